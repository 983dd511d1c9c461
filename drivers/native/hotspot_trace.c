/* Traces objects of a HotSpot JVM (JDK 11 and later) from its start: births with class and stack, and in which collection each died.
 *
 * On average one object is traced for each INTERVAL bytes that a thread allocates (JEP 331); 0: each object that Java code makes. Each has a weak
 * reference: a collector clears it when the object is dead, and has done so when it says that it has finished. So deaths are exact, for
 * collectors that stop the program: Serial, Parallel, G1. The slot of the reference holds the object's address, which the collector keeps right.
 *
 * So its address is known at its birth, and after each collection: which has moved, and where to. An object that is born while a collection is under way
 * is told when that has ended.
 *
 * Events go to gcspy's library for traced programs, whose functions are looked up.
 * While the lock is held, nothing of the JVM is called: the end of a collection is told at a safepoint, and takes the lock.
 *
 * Environment: GCSPY_RUNTIME_LIBRARY, GCSPY_TRACE_FOLDER, GCSPY_RUNTIME_STACKS (none, caller, full), GCSPY_TRACE_FOLLOW, GCSPY_RUNTIME_INTERVAL;
 * GCSPY_RUNTIME_CHECK=CLASS: print how many moves the slots of references showed, and after how many of them there was another object: one of another
 * class, or of this class with another first field, which is no reference.
 *
 * Source: JVM Tool Interface 11, SampledObjectAlloc, GarbageCollectionFinish; OpenJDK src/hotspot/share/runtime/jniHandles.hpp (a handle is the
 * address of a slot, with a tag in its lowest two bits). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <jvmti.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 128, DELETED_AT_ONCE = 64, FIRST_TYPE = 16 };

static struct {
    const char *(*begin)(const char *, const char *, int, const char *);
    void (*type)(uint32_t, uint64_t, const char *);
    int (*is_new)(uint64_t);
    void (*place)(uint64_t, uint64_t, const char *, const char *);
    uint32_t (*site)(uint64_t, const uint64_t *, uint32_t);
    void (*born)(uint64_t, uint64_t, uint32_t, uint32_t);
    void (*died)(uint64_t);
    void (*moved)(uint64_t, uint64_t);
    void (*collection)(int, int);
} trace;

struct traced {
    jweak reference;
    uint64_t address; /* where it was when it was looked at last */
    uint64_t check;   /* GCSPY_RUNTIME_CHECK: what was there */
    uint32_t is_exact;       /* it is of the class that is checked */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t collection_over = PTHREAD_COND_INITIALIZER;
static int collecting; /* from here on with the lock */
static struct traced *objects;
static size_t object_count, object_room;
static jweak *cleared;
static size_t cleared_count, cleared_room;
static uint64_t moves, wrong, seen;

static uint64_t count;
static uint32_t types = FIRST_TYPE;
static int depth, all;
static const char *checks;

static uint64_t mixed(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

static uint64_t address_in(jweak reference) { return *(const uint64_t *)((uintptr_t)reference & ~(uintptr_t)3); }

/* The class of an object, and its first field: compressed, in one word behind the mark. */
static uint64_t check_of(const struct traced *one, uint64_t address) {
    uint64_t word = *(const uint64_t *)(uintptr_t)(address + 8);
    return one->is_exact ? word : word & 0xffffffffu;
}

static void forget(jvmtiEnv *env, void *memory) {
    if (memory != NULL) (*env)->Deallocate(env, memory);
}

/* "Lthe/Class;" and "[[I" as in a program. */
static void readable(const char *signature, char *into, size_t room) {
    static const char *const primitive[] = {"Bbyte", "Cchar", "Ddouble", "Ffloat", "Iint", "Jlong", "Sshort", "Zboolean"};
    size_t dimensions = 0, at = 0;
    while (*signature == '[') signature++, dimensions++;
    if (*signature == 'L') {
        for (signature++; *signature && *signature != ';' && at + 1 < room; signature++) into[at++] = *signature == '/' ? '.' : *signature;
    } else
        for (size_t one = 0; one < sizeof primitive / sizeof *primitive; one++)
            if (primitive[one][0] == *signature) at = (size_t)snprintf(into, room, "%s", primitive[one] + 1);
    while (dimensions-- && at + 3 < room) into[at++] = '[', into[at++] = ']';
    into[at < room ? at : room - 1] = 0;
}

/* The number of a class: its tag. */
static uint32_t type_of(jvmtiEnv *env, jclass klass, jlong size) {
    jlong tag = 0;
    if ((*env)->GetTag(env, klass, &tag) == JVMTI_ERROR_NONE && tag != 0) return (uint32_t)tag;
    char *signature = NULL, name[512];
    if ((*env)->GetClassSignature(env, klass, &signature, NULL) != JVMTI_ERROR_NONE || signature == NULL) return 0;
    readable(signature, name, sizeof name);
    uint32_t number = __atomic_fetch_add(&types, 1, __ATOMIC_RELAXED);
    trace.type(number, signature[0] == '[' ? 0 : (uint64_t)size, name);
    forget(env, signature);
    (*env)->SetTag(env, klass, (jlong)number);
    return number;
}

static uint64_t line_of(jvmtiEnv *env, jmethodID method, jlocation location) {
    jvmtiLineNumberEntry *lines = NULL;
    jint entries = 0;
    uint64_t line = 0;
    jlocation nearest = -1;
    if (location < 0 || (*env)->GetLineNumberTable(env, method, &entries, &lines) != JVMTI_ERROR_NONE) return 0;
    for (jint one = 0; one < entries; one++) /* in any order */
        if (lines[one].start_location <= location && lines[one].start_location >= nearest) nearest = lines[one].start_location, line = (uint64_t)lines[one].line_number;
    forget(env, lines);
    return line;
}

static void define_place(jvmtiEnv *env, JNIEnv *jni, const jvmtiFrameInfo *frame, uint64_t place) {
    char *method = NULL, *signature = NULL, *file = NULL, name[512] = "", function[1024] = "?";
    jclass declaring = NULL;
    if ((*jni)->PushLocalFrame(jni, 4) != 0) (*jni)->ExceptionClear(jni);
    else {
        if ((*env)->GetMethodName(env, frame->method, &method, NULL, NULL) == JVMTI_ERROR_NONE && (*env)->GetMethodDeclaringClass(env, frame->method, &declaring) == JVMTI_ERROR_NONE &&
            (*env)->GetClassSignature(env, declaring, &signature, NULL) == JVMTI_ERROR_NONE) {
            readable(signature, name, sizeof name);
            snprintf(function, sizeof function, "%s.%s", name, method);
            if ((*env)->GetSourceFileName(env, declaring, &file) != JVMTI_ERROR_NONE) file = NULL;
        }
        (*jni)->PopLocalFrame(jni, NULL);
    }
    trace.place(place, line_of(env, frame->method, frame->location), function, file ? file : "");
    forget(env, method), forget(env, signature), forget(env, file);
}

static uint32_t site_of(jvmtiEnv *env, JNIEnv *jni, jthread thread) {
    jvmtiFrameInfo frames[DEEPEST];
    uint64_t places[DEEPEST], key = 1;
    jint frame_count = 0;
    if (depth == 0 || (*env)->GetStackTrace(env, thread, 0, depth, frames, &frame_count) != JVMTI_ERROR_NONE) return 0;
    for (jint one = 0; one < frame_count; one++) {
        places[one] = mixed(mixed(7, (uint64_t)(uintptr_t)frames[one].method), (uint64_t)frames[one].location) | 1ull << 63;
        if (trace.is_new(places[one])) define_place(env, jni, &frames[one], places[one]);
        key = mixed(key, places[one]);
    }
    return frame_count ? trace.site(key, places, (uint32_t)frame_count) : 0;
}

/* Tell a birth, when the object stands still. */
static void tell(struct traced one, uint64_t size, uint32_t site, uint32_t type) {
    pthread_mutex_lock(&lock);
    while (collecting) pthread_cond_wait(&collection_over, &lock);
    one.address = address_in(one.reference);
    trace.born(one.address, size, site, type);
    if (object_count == object_room) {
        size_t room = object_room ? object_room * 2 : 4096;
        struct traced *made = realloc(objects, room * sizeof *made);
        if (made != NULL) objects = made, object_room = room;
    }
    if (object_count < object_room) objects[object_count++] = one; /* else its death is not seen */
    pthread_mutex_unlock(&lock);
}

static void delete_cleared(JNIEnv *jni) {
    jweak some[DELETED_AT_ONCE];
    size_t taken = 0;
    pthread_mutex_lock(&lock);
    while (cleared_count && taken < DELETED_AT_ONCE) some[taken++] = cleared[--cleared_count];
    pthread_mutex_unlock(&lock);
    while (taken) (*jni)->DeleteWeakGlobalRef(jni, some[--taken]);
}

static int is_checked(jvmtiEnv *env, jclass klass) {
    char *signature = NULL, name[512];
    if ((*env)->GetClassSignature(env, klass, &signature, NULL) != JVMTI_ERROR_NONE || signature == NULL) return 0;
    readable(signature, name, sizeof name);
    forget(env, signature);
    return strcmp(name, checks) == 0;
}

static void JNICALL at_allocation(jvmtiEnv *env, JNIEnv *jni, jthread thread, jobject object, jclass klass, jlong size) {
    uint32_t site = site_of(env, jni, thread), type = type_of(env, klass, size);
    jweak reference = (*jni)->NewWeakGlobalRef(jni, object);
    if (reference == NULL) {
        (*jni)->ExceptionClear(jni);
        return;
    }
    __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    tell((struct traced){reference, 0, 0, checks && is_checked(env, klass)}, (uint64_t)size, site, type);
    delete_cleared(jni);
}

static void JNICALL at_start(jvmtiEnv *env) {
    (void)env;
    pthread_mutex_lock(&lock);
    collecting = 1;
    trace.collection(0, 0);
    for (size_t one = 0; checks && one < object_count; one++) {
        uint64_t address = address_in(objects[one].reference);
        wrong += address != objects[one].address; /* nothing moves but in a collection */
        objects[one].check = check_of(&objects[one], address);
        seen++;
    }
    pthread_mutex_unlock(&lock);
}

static void JNICALL at_finish(jvmtiEnv *env) {
    (void)env;
    size_t kept = 0;
    pthread_mutex_lock(&lock);
    if (cleared_count + object_count > cleared_room) {
        size_t room = cleared_count + object_count + 4096;
        jweak *made = realloc(cleared, room * sizeof *made);
        if (made != NULL) cleared = made, cleared_room = room;
    }
    for (size_t one = 0; one < object_count; one++) {
        uint64_t address = address_in(objects[one].reference);
        if (address == 0) {
            trace.died(objects[one].address);
            if (cleared_count < cleared_room) cleared[cleared_count++] = objects[one].reference;
            continue;
        }
        if (address != objects[one].address) moves++, trace.moved(objects[one].address, address);
        if (checks && objects[one].check) {
            wrong += check_of(&objects[one], address) != objects[one].check;
        }
        objects[one].address = address;
        objects[kept++] = objects[one];
    }
    object_count = kept;
    trace.collection(1, 0);
    collecting = 0;
    pthread_cond_broadcast(&collection_over);
    pthread_mutex_unlock(&lock);
}

static void JNICALL at_begin(jvmtiEnv *env, JNIEnv *jni, jthread thread) {
    (void)jni, (void)thread;
    (*env)->SetEventNotificationMode(env, JVMTI_ENABLE, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, NULL);
    /* What is left of the buffers that threads have now is not sampled: a collection takes them away. */
    if (all) (*env)->ForceGarbageCollection(env);
}

static void JNICALL at_end(jvmtiEnv *env, JNIEnv *jni) {
    (void)jni;
    (*env)->SetEventNotificationMode(env, JVMTI_DISABLE, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, NULL);
    if (checks) fprintf(stderr, "gcspy check: %llu objects traced, %llu looked at before collections, %llu moves, %llu wrong\n", (unsigned long long)count, (unsigned long long)seen, (unsigned long long)moves, (unsigned long long)wrong);
}

static const char *find_library(void) {
    static const struct {
        const char *name;
        void *at;
    } wanted[] = {
        {"gcspy_runtime_begin", &trace.begin}, {"gcspy_runtime_type", &trace.type}, {"gcspy_runtime_is_new", &trace.is_new}, {"gcspy_runtime_place", &trace.place},
        {"gcspy_runtime_site", &trace.site}, {"gcspy_runtime_born", &trace.born}, {"gcspy_runtime_died", &trace.died}, {"gcspy_runtime_moved", &trace.moved}, {"gcspy_runtime_collection", &trace.collection},
    };
    const char *path = getenv("GCSPY_RUNTIME_LIBRARY");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) return "gcspy's library cannot be loaded";
    for (size_t one = 0; one < sizeof wanted / sizeof *wanted; one++) {
        void *found = dlsym(library, wanted[one].name);
        if (found == NULL) return "gcspy's library is another one";
        memcpy(wanted[one].at, &found, sizeof found);
    }
    return NULL;
}

static const char *begin(JavaVM *vm) {
    const char *folder = getenv("GCSPY_TRACE_FOLDER"), *stacks = getenv("GCSPY_RUNTIME_STACKS"), *follow = getenv("GCSPY_TRACE_FOLLOW"), *interval = getenv("GCSPY_RUNTIME_INTERVAL");
    jvmtiEnv *env = NULL;
    jvmtiCapabilities wanted;
    jvmtiEventCallbacks calls;
    char *version = NULL, runtime[64];
    if (folder == NULL || stacks == NULL || interval == NULL) return "gcspy's variables are missing";
    if ((*vm)->GetEnv(vm, (void **)&env, JVMTI_VERSION_11) != JNI_OK) return "it is older than JDK 11";
    memset(&wanted, 0, sizeof wanted), memset(&calls, 0, sizeof calls);
    wanted.can_generate_sampled_object_alloc_events = wanted.can_tag_objects = wanted.can_generate_garbage_collection_events = 1;
    wanted.can_get_source_file_name = wanted.can_get_line_numbers = 1;
    if ((*env)->AddCapabilities(env, &wanted) != JVMTI_ERROR_NONE) return "it cannot tell allocations and collections (another agent may)";
    depth = strcmp(stacks, "full") == 0 ? DEEPEST : strcmp(stacks, "caller") == 0;
    all = atoll(interval) == 0;
    checks = getenv("GCSPY_RUNTIME_CHECK");
    (*env)->GetSystemProperty(env, "java.vm.version", &version);
    snprintf(runtime, sizeof runtime, "HotSpot %s", version ? version : "");
    forget(env, version);
    const char *why_not = find_library();
    if (why_not == NULL) why_not = trace.begin(folder, stacks, follow != NULL && strcmp(follow, "1") == 0, runtime);
    if (why_not) return why_not;
    calls.VMInit = at_begin, calls.VMDeath = at_end, calls.SampledObjectAlloc = at_allocation;
    calls.GarbageCollectionStart = at_start, calls.GarbageCollectionFinish = at_finish;
    if ((*env)->SetEventCallbacks(env, &calls, (jint)sizeof calls) != JVMTI_ERROR_NONE || (*env)->SetHeapSamplingInterval(env, (jint)atoll(interval)) != JVMTI_ERROR_NONE) return "it does not take the callbacks";
    jvmtiEvent events[] = {JVMTI_EVENT_VM_INIT, JVMTI_EVENT_VM_DEATH, JVMTI_EVENT_GARBAGE_COLLECTION_START, JVMTI_EVENT_GARBAGE_COLLECTION_FINISH};
    for (size_t one = 0; one < sizeof events / sizeof *events; one++) (*env)->SetEventNotificationMode(env, JVMTI_ENABLE, events[one], NULL);
    return NULL;
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved) {
    (void)options, (void)reserved;
    const char *why_not = begin(vm), *folder = getenv("GCSPY_TRACE_FOLDER");
    char path[600];
    if (why_not && folder) {
        snprintf(path, sizeof path, "%s/refused", folder);
        FILE *file = fopen(path, "w");
        if (file) fprintf(file, "java: %s", why_not), fclose(file);
    }
    return why_not ? JNI_ERR : JNI_OK;
}
