"""The public API of this package: all that a driver, or a program that embeds the server, may use."""

from __future__ import annotations

from gcspy_protocol.details import (
    Answer,
    AnswerState,
    Cell,
    ColumnKind,
    DetailColumn,
    DetailTable,
    MemoryReport,
    Query,
)
from gcspy_protocol.messages import Event
from gcspy_protocol.model import Control, EventKind, Mode, PaintStyle, PauseActsOn, Presentation
from gcspy_protocol.settings import Setting, SettingKind
from gcspy_protocol.triggers import Trigger, TriggerAction

from gcspy_server.binning import bytes_per_tile, tiles_of
from gcspy_server.driver_options import DriverOption, OptionValue
from gcspy_server.drivers import (
    ENTRY_POINT_GROUP,
    LEVEL,
    MODE,
    AttachOptions,
    Driver,
    ProgramStart,
    Recognition,
    ServerDescription,
    Specificity,
    SteppedDriver,
    WaitingDriver,
    find_drivers,
    load_driver,
)
from gcspy_server.heap_question import HeapQuestion, HeapQuestionKind, Investigator
from gcspy_server.interpreter.core import NEVER, EventForecast
from gcspy_server.interpreter.gather_request import GatherRequest
from gcspy_server.memory_report import MemoryQuestion
from gcspy_server.names import ExtentNames, StringNames, TileNames, UniformNames
from gcspy_server.server import ServedSession, Server
from gcspy_server.spaces import DetailFunction, ServerSpace, ServerStream, SpaceOptions
from gcspy_server.type_count import TypeCount
from gcspy_session.network.address import default_address
from gcspy_session.options import SessionOptions

__all__ = [
    "ENTRY_POINT_GROUP",
    "LEVEL",
    "NEVER",
    "MODE",
    "Answer",
    "AnswerState",
    "AttachOptions",
    "Cell",
    "ColumnKind",
    "Control",
    "DetailColumn",
    "DetailFunction",
    "DetailTable",
    "Driver",
    "DriverOption",
    "Event",
    "EventKind",
    "ExtentNames",
    "GatherRequest",
    "HeapQuestion",
    "HeapQuestionKind",
    "Investigator",
    "ServedSession",
    "MemoryQuestion",
    "MemoryReport",
    "Mode",
    "EventForecast",
    "OptionValue",
    "PaintStyle",
    "PauseActsOn",
    "ProgramStart",
    "Presentation",
    "Query",
    "Recognition",
    "Server",
    "ServerDescription",
    "ServerSpace",
    "ServerStream",
    "SessionOptions",
    "Setting",
    "SettingKind",
    "SpaceOptions",
    "Specificity",
    "SteppedDriver",
    "StringNames",
    "TileNames",
    "Trigger",
    "TriggerAction",
    "TypeCount",
    "UniformNames",
    "WaitingDriver",
    "bytes_per_tile",
    "default_address",
    "find_drivers",
    "load_driver",
    "tiles_of",
]
