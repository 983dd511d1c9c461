/* Blocks and objects of CPython 3.9 to 3.15: its allocators, its tracer of references (from 3.13 on) and its collector. See writer.h.
 *
 * No header of Python is needed: functions are looked up in the program, and structures are those of the stable ABI
 * (Doc/c-api/memory.rst, PyMemAllocatorEx; Include/cpython/object.h, PyRefTracer_SetTracer). Where the current frame is differs from version
 * to version: `struct python_layout` says it, and gcspy checks it before anything is written.
 *
 * Hooks of the domains "mem" and "object", and the tracer, run with the interpreter's lock held. Those of "raw" may not: their blocks have no site. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>

#include "writer.h"

#define EXPORTED __attribute__((visibility("default")))
#define KNOWN_TYPES 8192u
#define VERSIONS 65536u
#define FIRST_TYPE 16u /* smaller numbers are domains' */
#define DEEPEST 128

enum domain { DOMAIN_RAW = 0, DOMAIN_MEM = 1, DOMAIN_OBJ = 2 };

struct allocator { /* PyMemAllocatorEx */
    void *context;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *);
};

/* Offsets in bytes; -1: not there. */
struct python_layout {
    int64_t thread_frame, thread_holder, holder_frame; /* the current frame is in the thread's state, or in what that points to */
    int64_t code, previous, instruction;
    int64_t instruction_is_index; /* 0: a pointer; 1: a number of bytes; 2: a number of instructions of 2 bytes */
    int64_t first_instruction;    /* of a code object */
    int64_t file_name, function_name;
    int64_t tags; /* bits of a pointer to code that do not belong to it */
    int64_t owner; /* a byte that is 3 in frames of the interpreter itself; -1: their code is none */
};

static struct {
    void *(*thread_state)(void);
    void (*get_allocator)(int, struct allocator *);
    void (*set_allocator)(int, struct allocator *);
    int (*set_tracer)(int (*)(void *, int, void *), void *);
    int (*line_of)(void *, int);
    void (*keep)(void *);
    const char *(*text_of)(void *, int64_t *);
    void (*fetch)(void **, void **, void **);
    void (*restore)(void *, void *, void *);
    void (*clear)(void);
    void *(*tuple_item)(void *, int64_t);
    void *(*dict_item)(void *, const char *);
    long (*number_of)(void *);
    void *(*make_function)(void *, void *, void *);
    void *code_type, *none;
} python;

static struct allocator before[3];
static struct python_layout layout;
/* This thread is in an allocator that calls another one: pymalloc takes what is large from "raw". */
THREAD_LOCAL int inner;
static int whole_stacks, traces_objects, raw_has_frames;

static struct {
    void *type;
    uint32_t number;
} known_types[KNOWN_TYPES];
static uint32_t type_count = FIRST_TYPE - 1;
static uint8_t versions[VERSIONS]; /* of code objects, by their address: another one may be at the same place later */

static inline uint64_t word_in(const void *object, int64_t offset) { return *(const uint64_t *)(const void *)((const uint8_t *)object + offset); }

static inline uint32_t version_slot(const void *code) { return (uint32_t)(((uint64_t)code * 0x9e3779b97f4a7c15ull) >> 48) % VERSIONS; }

static inline void *current_frame(void) {
    uint8_t *state = python.thread_state();
    if (state == NULL) return NULL;
    if (layout.thread_holder < 0) return (void *)word_in(state, layout.thread_frame);
    void *holder = (void *)word_in(state, layout.thread_holder);
    return holder ? (void *)word_in(holder, layout.holder_frame) : NULL;
}

/* The code of a frame; NULL: it is none of Python code. */
static inline void *code_of(const void *frame) {
    if (layout.owner >= 0 && ((const uint8_t *)frame)[layout.owner] == 3) return NULL;
    void *code = (void *)(word_in(frame, layout.code) & ~(uint64_t)layout.tags);
    return code != NULL && word_in(code, 8) == (uint64_t)python.code_type ? code : NULL;
}

static inline uint64_t place_of(const void *frame, const void *code) {
    uint64_t instruction = layout.instruction_is_index ? (uint64_t) * (const int32_t *)(const void *)((const uint8_t *)frame + layout.instruction) : word_in(frame, layout.instruction);
    /* Not of code ^ instruction: an instruction lies behind its code at the same distance in many functions. */
    return mixed(mixed(mixed(1, (uint64_t)code + versions[version_slot(code)]), instruction), 2) | 1ull << 63;
}

static void define_frame(struct thread *thread, const void *frame, void *code, uint64_t place) {
    uint32_t number;
    if (!writer_new_site(place ^ 0x5555, &number)) return;
    int64_t instruction = layout.instruction_is_index ? *(const int32_t *)(const void *)((const uint8_t *)frame + layout.instruction) : (int64_t)word_in(frame, layout.instruction);
    if (layout.instruction_is_index == 2) instruction *= 2;
    else if (!layout.instruction_is_index) instruction -= (int64_t)code + layout.first_instruction;
    void *error[3];
    python.fetch(&error[0], &error[1], &error[2]);
    int line = python.line_of(code, (int)instruction);
    const char *function = python.text_of((void *)word_in(code, layout.function_name), NULL);
    if (function == NULL) python.clear();
    const char *file = python.text_of((void *)word_in(code, layout.file_name), NULL);
    if (file == NULL) python.clear();
    uint64_t words[2] = {place, (uint64_t)(line > 0 ? line : 0)};
    writer_meta(thread, META_FRAME, 0, words, 2, function ? function : "?", file ? file : "?");
    python.restore(error[0], error[1], error[2]);
    if (!traces_objects) python.keep(code); /* nobody says when it dies */
}

/* The site of what happens now; thread->busy is set. */
static uint32_t python_site(struct thread *thread) {
    if (wanted_stacks == STACKS_NONE) return 0;
    void *frame = current_frame(), *code = NULL;
    while (frame != NULL && (code = code_of(frame)) == NULL) frame = (void *)word_in(frame, layout.previous);
    if (frame == NULL) return 0;
    uint64_t key = place_of(frame, code), hash;
    if (!whole_stacks) hash = key;
    else {
        hash = mixed(1, key);
        uint32_t depth = 1;
        for (void *outer = (void *)word_in(frame, layout.previous); outer != NULL && depth < DEEPEST; outer = (void *)word_in(outer, layout.previous)) {
            void *outer_code = code_of(outer);
            if (outer_code != NULL) hash = mixed(hash, place_of(outer, outer_code)), depth++;
        }
    }
    struct known_site *known = &thread->sites[(hash * 0x9e3779b97f4a7c15ull) >> 53];
    if (LIKELY(known->key == hash)) return known->site;
    int error = errno;
    uint32_t site;
    if (writer_new_site(hash, &site)) {
        uint64_t places[DEEPEST];
        uint32_t depth = 0;
        for (void *outer = frame; outer != NULL && depth < (whole_stacks ? DEEPEST : 1); outer = (void *)word_in(outer, layout.previous)) {
            void *outer_code = code_of(outer);
            if (outer_code == NULL) continue;
            places[depth] = place_of(outer, outer_code);
            define_frame(thread, outer, outer_code, places[depth++]);
        }
        writer_meta(thread, META_SITE, site, places, depth, NULL, NULL);
    }
    errno = error;
    known->key = hash, known->site = site;
    return site;
}

static inline struct thread *begin(uint32_t kind, void *address, uint64_t size, uint32_t detail) {
    struct thread *thread = writer_thread();
    if (thread == NULL || !writer_begin(thread, kind, (uint64_t)address, size, detail, NULL)) return NULL;
    return thread;
}

static inline void write_two(struct thread *thread, uint64_t first, uint64_t second) {
    if (UNLIKELY(thread->at > thread->limit)) writer_make_room(thread);
    if (LIKELY(thread->block != NULL)) {
        uint64_t words[2] = {first, second};
        writer_put(thread, words, 2);
    } else thread->lost++;
    writer_end(thread);
}

static inline void allocated(enum domain domain, void *address, uint64_t size) {
    struct thread *thread = begin(RECORD_ALLOCATE, address, size, 0);
    if (UNLIKELY(thread == NULL)) return;
    uint64_t site = domain != DOMAIN_RAW || raw_has_frames ? python_site(thread) : 0;
    write_two(thread, ((uint64_t)address & 0xfffffffffff8ull) | RECORD_ALLOCATE | size << 48, site | (size >> 16 & 0xfffffff) << 32 | (uint64_t)(domain + 1) << 60);
}

static inline void freed(const void *address, enum free_kind kind) {
    struct thread *thread = writer_thread();
    if (LIKELY(thread != NULL)) writer_freed(thread, address, kind);
}

#define HOOKS(name, domain) \
    static void *name##_malloc(void *context, size_t bytes) { \
        (void)context; \
        inner++; \
        void *found = before[domain].malloc(before[domain].context, bytes); \
        if (--inner == 0 && LIKELY(found != NULL)) allocated(domain, found, bytes); \
        return found; \
    } \
    static void *name##_calloc(void *context, size_t count, size_t bytes) { \
        (void)context; \
        inner++; \
        void *found = before[domain].calloc(before[domain].context, count, bytes); \
        if (--inner == 0 && LIKELY(found != NULL)) allocated(domain, found, count * bytes); \
        return found; \
    } \
    static void *name##_realloc(void *context, void *old, size_t bytes) { \
        (void)context; \
        if (old != NULL && inner == 0) freed(old, FREE_RESIZED); \
        inner++; \
        void *found = before[domain].realloc(before[domain].context, old, bytes); \
        if (--inner != 0) return found; \
        if (LIKELY(found != NULL)) allocated(domain, found, bytes); \
        else if (old != NULL) freed(old, FREE_UNDONE); \
        return found; \
    } \
    static void name##_free(void *context, void *old) { \
        (void)context; \
        if (old != NULL && inner == 0) freed(old, FREE_BLOCK); \
        inner++; \
        before[domain].free(before[domain].context, old); \
        inner--; \
    }

HOOKS(raw, DOMAIN_RAW)
HOOKS(mem, DOMAIN_MEM)
HOOKS(obj, DOMAIN_OBJ)

/* ---- objects */

static uint32_t type_number(struct thread *thread, void *type) {
    uint32_t slot = (uint32_t)(((uint64_t)type * 0x9e3779b97f4a7c15ull) >> 51);
    for (uint32_t tries = 0; tries < 64; tries++, slot = (slot + 1) % KNOWN_TYPES) {
        if (LIKELY(known_types[slot].type == type)) return known_types[slot].number;
        if (known_types[slot].type == NULL) break;
        if (tries == 63) memset(known_types, 0, sizeof known_types); /* too full: begin anew */
    }
    uint32_t number = ++type_count;
    known_types[slot].type = type, known_types[slot].number = number;
    uint64_t words[2] = {word_in(type, 32), word_in(type, 40)};
    writer_meta(thread, META_TYPE, number, words, 2, (const char *)word_in(type, 24), NULL);
    return number;
}

static int object_event(void *object, int event, void *data) {
    (void)data;
    void *type = (void *)word_in(object, 8);
    if (event == 0) {
        struct thread *thread = begin(RECORD_OBJECT, object, 0, 0);
        if (UNLIKELY(thread == NULL)) return 0;
        uint64_t number = type_number(thread, type), site = python_site(thread);
        uint64_t instance = word_in(type, 32) >> 3;
        write_two(thread, ((uint64_t)object & 0xfffffffffff8ull) | RECORD_OBJECT | (instance < 0xffff ? instance : 0xffff) << 48, site | number << 32);
    } else if (event == 1) {
        if (UNLIKELY(word_in(type, 168) >> 31 & 1)) memset(known_types, 0, sizeof known_types); /* a type dies */
        else if (UNLIKELY(type == python.code_type)) versions[version_slot(object)]++;
        freed(object, FREE_OBJECT);
    }
    return 0;
}

/* ---- collections */

static void *collected(void *self, void *arguments) {
    (void)self;
    void *phase = python.tuple_item(arguments, 0), *facts = python.tuple_item(arguments, 1);
    const char *text = phase ? python.text_of(phase, NULL) : NULL;
    if (text != NULL && facts != NULL) {
        static const char *const keys[] = {"generation", "collected", "uncollectable"};
        uint64_t numbers[3] = {0};
        for (int index = 0; index < 3; index++) {
            void *number = python.dict_item(facts, keys[index]);
            if (number != NULL) numbers[index] = (uint64_t)python.number_of(number);
        }
        struct thread *thread = writer_thread();
        if (thread != NULL && !thread->busy) {
            thread->busy = 1;
            writer_meta(thread, strcmp(text, "start") == 0 ? META_COLLECTION_START : META_COLLECTION_END, (uint32_t)numbers[0], numbers + 1, 2, NULL, NULL);
            writer_end(thread);
        }
    }
    python.keep(python.none);
    return python.none;
}

static struct {
    const char *name;
    void *(*function)(void *, void *);
    int flags; /* METH_VARARGS */
    const char *documentation;
} collected_definition = {"gcspy_collected", collected, 1, NULL};

/* A new reference to a function for gc.callbacks. */
EXPORTED void *gcspy_python_callback(void);
EXPORTED void *gcspy_python_callback(void) { return python.make_function(&collected_definition, NULL, NULL); }

/* ---- begin */

static void *symbol(const char *name, const char **missing) {
    void *found = dlsym(RTLD_DEFAULT, name);
    if (found == NULL && missing != NULL) *missing = name;
    return found;
}

/* Look up what is needed; returns the name of what is not there, NULL: all is. */
EXPORTED const char *gcspy_python_prepare(const struct python_layout *given);
EXPORTED const char *gcspy_python_prepare(const struct python_layout *given) {
    const char *missing = NULL;
    layout = *given;
    *(void **)&python.thread_state = symbol("PyThreadState_GetUnchecked", NULL);
    if (python.thread_state == NULL) *(void **)&python.thread_state = symbol("_PyThreadState_UncheckedGet", &missing);
    *(void **)&python.get_allocator = symbol("PyMem_GetAllocator", &missing);
    *(void **)&python.set_allocator = symbol("PyMem_SetAllocator", &missing);
    *(void **)&python.set_tracer = symbol("PyRefTracer_SetTracer", NULL);
    *(void **)&python.line_of = symbol("PyCode_Addr2Line", &missing);
    *(void **)&python.keep = symbol("Py_IncRef", &missing);
    *(void **)&python.text_of = symbol("PyUnicode_AsUTF8AndSize", &missing);
    *(void **)&python.fetch = symbol("PyErr_Fetch", &missing);
    *(void **)&python.restore = symbol("PyErr_Restore", &missing);
    *(void **)&python.clear = symbol("PyErr_Clear", &missing);
    *(void **)&python.tuple_item = symbol("PyTuple_GetItem", &missing);
    *(void **)&python.dict_item = symbol("PyDict_GetItemString", &missing);
    *(void **)&python.number_of = symbol("PyLong_AsLong", &missing);
    *(void **)&python.make_function = symbol("PyCFunction_NewEx", &missing);
    python.code_type = symbol("PyCode_Type", &missing);
    python.none = symbol("_Py_NoneStruct", &missing);
    return missing;
}

/* The code objects of the current frames, for a check of the layout; returns how many. */
EXPORTED int gcspy_python_codes(uint64_t *codes, int room);
EXPORTED int gcspy_python_codes(uint64_t *codes, int room) {
    int count = 0;
    for (void *frame = current_frame(); frame != NULL && count < room; frame = (void *)word_in(frame, layout.previous)) {
        void *code = code_of(frame);
        if (code != NULL) codes[count++] = (uint64_t)code;
    }
    return count;
}

/* The line of the innermost frame, for the same. */
EXPORTED int gcspy_python_line(void);
EXPORTED int gcspy_python_line(void) {
    void *frame = current_frame(), *code = frame ? code_of(frame) : NULL;
    if (code == NULL) return -1;
    int64_t instruction = layout.instruction_is_index ? *(const int32_t *)(const void *)((const uint8_t *)frame + layout.instruction) : (int64_t)word_in(frame, layout.instruction);
    if (layout.instruction_is_index == 2) instruction *= 2;
    else if (!layout.instruction_is_index) instruction -= (int64_t)code + layout.first_instruction;
    return python.line_of(code, (int)instruction);
}

/* Begin to write; returns why not, NULL: it does. */
EXPORTED const char *gcspy_python_begin(const char *folder, const char *stacks, int follow, const char *runtime, int objects, int raw_frames);
EXPORTED const char *gcspy_python_begin(const char *folder, const char *stacks, int follow, const char *runtime, int objects, int raw_frames) {
    whole_stacks = strcmp(stacks, "full") == 0, raw_has_frames = raw_frames;
    traces_objects = objects && python.set_tracer != NULL;
    const char *why_not = writer_start(folder, strcmp(stacks, "none") == 0 ? STACKS_NONE : STACKS_CALLER, follow, SEGMENT_PYTHON | (traces_objects ? SEGMENT_OBJECTS : 0), runtime);
    if (why_not) return why_not;
    struct allocator ours[3] = {
        {NULL, raw_malloc, raw_calloc, raw_realloc, raw_free},
        {NULL, mem_malloc, mem_calloc, mem_realloc, mem_free},
        {NULL, obj_malloc, obj_calloc, obj_realloc, obj_free},
    };
    for (int domain = 0; domain < 3; domain++) python.get_allocator(domain, &before[domain]);
    for (int domain = 0; domain < 3; domain++) python.set_allocator(domain, &ours[domain]);
    if (traces_objects && python.set_tracer(object_event, NULL) != 0) return "the tracer of references cannot be set";
    return NULL;
}
