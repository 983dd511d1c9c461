class KilledWorker(Exception):
    task: str
