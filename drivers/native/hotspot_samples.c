/* Samples of allocations of a HotSpot JVM (JEP 331, JDK 11 and later): where objects that are still alive were allocated.
 *
 * On average one object is sampled for each INTERVAL bytes that a thread allocates. A sample is counted for its class and its stack, and
 * the object gets a tag; when it is collected, the sample does not count as alive any more. Nothing is held, and no Java code runs.
 *
 * It is loaded on request, and again to be told what to do; once stopped, it has no events, no tags and no memory. If nobody asks for
 * the result until the deadline, it stops by itself.
 *
 * Options, for loading it into a running JVM:
 *     start:INTERVAL:SECONDS   sample, for at most this long
 *     finish:PATH              collect garbage, so that what lives is counted, write the result, and stop
 *     stop                     stop
 *
 * Result, as text: "gcspy-samples 1 INTERVAL DROPPED", and a line for each class and stack: samples alive, their bytes, samples, their
 * bytes, class, frames from the innermost on; separated by tabs. Bytes are estimates of all allocations: an object of SIZE bytes was
 * sampled with a probability of 1 - exp(-SIZE / INTERVAL), and stands for SIZE divided by that. Control characters are question marks.
 *
 * While the lock is held, nothing of the JVM is called: objects may be reported as freed at a safepoint, which waits for the lock.
 *
 * It is built with the headers of JDK 11 or later.
 *
 * Source: JVM Tool Interface 11, SampledObjectAlloc, SetHeapSamplingInterval, ObjectFree; OpenJDK src/hotspot/share/runtime/
 * threadHeapSampler.cpp (geometric distribution).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <jvmti.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 16, NUMBER_BITS = 13, MOST_SITES = (1 << NUMBER_BITS) - 1, BUCKETS = 1 << NUMBER_BITS, TEXT_BYTES = 4096, CLASS_BYTES = 512 };

/* What Agent_OnAttach returns, and the JVM tells; gcspy_drivers/hotspot/agent/allocation_samples.py has the words. */
enum { UNKNOWN_OPTION = 101, IN_USE = 102, NO_SAMPLES = 103, NOT_RUNNING = 104, NOT_WRITTEN = 105 };

struct site {
    uint64_t hash;
    uint16_t next; /* one more than the number of the next site of the bucket */
    uint16_t depth;
    jvmtiFrameInfo stack[DEPTH];
    char *type, *text;
    int64_t live, all;
    double live_bytes, all_bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static jvmtiEnv *tools; /* not NULL: it samples */
static struct site *sites; /* from here on with the lock */
static uint16_t buckets[BUCKETS];
static int used;
static int64_t dropped, interval;
static int64_t until_secs;

static int64_t now_secs(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec;
}

/* How many bytes of allocations a sampled object stands for. */
static double stands_for(int64_t size) {
    return interval > 0 ? (double)size / -expm1(-(double)size / (double)interval) : (double)size;
}

static uint64_t hash_of(const char *type, const jvmtiFrameInfo *stack, int depth) {
    uint64_t hash = 14695981039346656037u;
    for (; *type != 0; type++) hash = (hash ^ (unsigned char)*type) * 1099511628211u;
    for (int i = 0; i < depth; i++) {
        hash = (hash ^ (uint64_t)(uintptr_t)stack[i].method) * 1099511628211u;
        hash = (hash ^ (uint64_t)stack[i].location) * 1099511628211u;
    }
    return hash ^ hash >> 32;
}

static int same(const struct site *site, const char *type, const jvmtiFrameInfo *stack, int depth) {
    if (site->depth != depth || strncmp(site->type, type, CLASS_BYTES - 1) != 0) return 0;
    for (int i = 0; i < depth; i++)
        if (site->stack[i].method != stack[i].method || site->stack[i].location != stack[i].location) return 0;
    return 1;
}

/* With the lock: the number of a site, or -1. */
static int find(uint64_t hash, const char *type, const jvmtiFrameInfo *stack, int depth) {
    for (int at = buckets[hash % BUCKETS]; at != 0; at = sites[at - 1].next)
        if (sites[at - 1].hash == hash && same(&sites[at - 1], type, stack, depth)) return at - 1;
    return -1;
}

/* With the lock: a new site, which takes the text; -1: there is no room. */
static int add(uint64_t hash, const char *type, const jvmtiFrameInfo *stack, int depth, char *text) {
    struct site *site = &sites[used];
    if (used >= MOST_SITES || text == NULL) return -1;
    site->type = strndup(type, CLASS_BYTES - 1);
    if (site->type == NULL) return -1;
    site->hash = hash;
    site->depth = (uint16_t)depth;
    memcpy(site->stack, stack, (size_t)depth * sizeof *stack);
    site->text = text;
    site->next = buckets[hash % BUCKETS];
    buckets[hash % BUCKETS] = (uint16_t)(used + 1);
    return used++;
}

/* With the lock. */
static void clear(void) {
    for (int i = 0; i < used; i++) free(sites[i].type), free(sites[i].text);
    free(sites);
    sites = NULL;
    used = 0;
    memset(buckets, 0, sizeof buckets);
}

static void forget(jvmtiEnv *env, void *memory) {
    if (memory != NULL) (*env)->Deallocate(env, memory);
}

static int line_of(jvmtiEnv *env, jmethodID method, jlocation location) {
    jvmtiLineNumberEntry *lines = NULL;
    jint count = 0;
    int line = -1;
    if (location < 0 || (*env)->GetLineNumberTable(env, method, &count, &lines) != JVMTI_ERROR_NONE) return -1;
    jlocation nearest = -1;
    for (jint i = 0; i < count; i++) /* in any order */
        if (lines[i].start_location <= location && lines[i].start_location >= nearest) {
            nearest = lines[i].start_location;
            line = lines[i].line_number;
        }
    forget(env, lines);
    return line;
}

/* Append "Lthe/Class;.method(File.java:12)". */
static int append_frame(jvmtiEnv *env, const jvmtiFrameInfo *frame, char *text, size_t room) {
    char *name = NULL, *type = NULL, *file = NULL;
    jclass declaring = NULL;
    int length = 0;
    if ((*env)->GetMethodName(env, frame->method, &name, NULL, NULL) == JVMTI_ERROR_NONE &&
        (*env)->GetMethodDeclaringClass(env, frame->method, &declaring) == JVMTI_ERROR_NONE &&
        (*env)->GetClassSignature(env, declaring, &type, NULL) == JVMTI_ERROR_NONE) {
        int line = line_of(env, frame->method, frame->location);
        if ((*env)->GetSourceFileName(env, declaring, &file) != JVMTI_ERROR_NONE) file = NULL;
        length = line < 0 ? snprintf(text, room, "%s.%s(%s)", type, name, file == NULL ? "" : file)
                          : snprintf(text, room, "%s.%s(%s:%d)", type, name, file == NULL ? "" : file, line);
    }
    forget(env, name), forget(env, type), forget(env, file);
    return length > 0 && (size_t)length < room ? length : 0;
}

static void make_printable(char *text) {
    for (; *text != 0; text++)
        if ((unsigned char)*text < 32 || *text == 127) *text = '?';
}

/* The frames, each behind a tab; as many as fit. */
static char *describe(jvmtiEnv *env, JNIEnv *jni, const jvmtiFrameInfo *stack, int depth) {
    char *text = malloc(TEXT_BYTES);
    size_t at = 0;
    if (text == NULL) return NULL;
    text[0] = 0;
    for (int i = 0; i < depth && at + 2 < TEXT_BYTES; i++) {
        int length = 0;
        if ((*jni)->PushLocalFrame(jni, 4) == 0) {
            length = append_frame(env, &stack[i], text + at + 1, TEXT_BYTES - at - 1);
            (*jni)->PopLocalFrame(jni, NULL);
        } else (*jni)->ExceptionClear(jni);
        text[at] = 0;
        if (length == 0) break;
        make_printable(text + at + 1);
        text[at] = '\t';
        at += (size_t)length + 1;
    }
    return text;
}

static void listen_to(jvmtiEnv *env, jvmtiEventMode mode) {
    (*env)->SetEventNotificationMode(env, mode, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, NULL);
    (*env)->SetEventNotificationMode(env, mode, JVMTI_EVENT_OBJECT_FREE, NULL);
}

/* Count a sample: its tag, or 0. A new site is described without the lock. */
static jlong count(jvmtiEnv *env, JNIEnv *jni, const char *type, const jvmtiFrameInfo *stack, int depth, int64_t size) {
    uint64_t hash = hash_of(type, stack, depth);
    char *text = NULL;
    int number = -1, known;
    pthread_mutex_lock(&lock);
    known = tools != env || used >= MOST_SITES || (number = find(hash, type, stack, depth)) >= 0;
    pthread_mutex_unlock(&lock);
    if (!known) text = describe(env, jni, stack, depth);
    pthread_mutex_lock(&lock);
    number = -1;
    if (tools == env) {
        number = find(hash, type, stack, depth);
        if (number < 0 && (number = add(hash, type, stack, depth, text)) >= 0) text = NULL;
        if (number >= 0) {
            struct site *site = &sites[number];
            double bytes = stands_for(size);
            site->live++, site->all++;
            site->live_bytes += bytes, site->all_bytes += bytes;
        } else dropped++;
    }
    pthread_mutex_unlock(&lock);
    free(text);
    return number < 0 ? 0 : (jlong)size << NUMBER_BITS | (number + 1);
}

static void uncount(jvmtiEnv *env, jlong tag) {
    int number = (int)(tag & ((1 << NUMBER_BITS) - 1)) - 1;
    pthread_mutex_lock(&lock);
    if (tools == env && number >= 0 && number < used) {
        sites[number].live--;
        sites[number].live_bytes -= stands_for((int64_t)(tag >> NUMBER_BITS));
    }
    pthread_mutex_unlock(&lock);
}

static void JNICALL at_free(jvmtiEnv *env, jlong tag) { uncount(env, tag); }

static void JNICALL at_sample(jvmtiEnv *env, JNIEnv *jni, jthread thread, jobject object, jclass klass, jlong size) {
    jvmtiFrameInfo stack[DEPTH];
    char *type = NULL;
    jint depth = 0;
    jlong tag = 0;
    if (now_secs() > __atomic_load_n(&until_secs, __ATOMIC_RELAXED)) {
        listen_to(env, JVMTI_DISABLE); /* nobody asked for the result */
        pthread_mutex_lock(&lock);
        if (tools == env) clear();
        pthread_mutex_unlock(&lock);
        return;
    }
    memset(stack, 0, sizeof stack);
    if ((*env)->GetStackTrace(env, thread, 0, DEPTH, stack, &depth) != JVMTI_ERROR_NONE) depth = 0;
    if ((*env)->GetClassSignature(env, klass, &type, NULL) != JVMTI_ERROR_NONE || type == NULL) return;
    make_printable(type);
    tag = count(env, jni, type, stack, depth, size);
    forget(env, type);
    if (tag != 0 && (*env)->SetTag(env, object, tag) != JVMTI_ERROR_NONE) uncount(env, tag);
}

/* ------------------------------------------------------------------ requests: one at a time, in the JVM's attach listener */

static void stop(void) {
    jvmtiEnv *env = tools;
    if (env == NULL) return;
    listen_to(env, JVMTI_DISABLE);
    pthread_mutex_lock(&lock);
    tools = NULL; /* a callback that is on its way counts nothing */
    clear();
    pthread_mutex_unlock(&lock);
    (*env)->DisposeEnvironment(env);
}

static int open_tools(JavaVM *vm, jvmtiEnv **found, jint bytes) {
    jvmtiCapabilities capabilities;
    jvmtiEventCallbacks callbacks;
    jvmtiEnv *env = NULL;
    if ((*vm)->GetEnv(vm, (void **)&env, JVMTI_VERSION_11) != JNI_OK || env == NULL) return 0;
    memset(&capabilities, 0, sizeof capabilities);
    capabilities.can_generate_sampled_object_alloc_events = 1;
    capabilities.can_generate_object_free_events = 1;
    capabilities.can_tag_objects = 1;
    capabilities.can_get_line_numbers = 1;
    capabilities.can_get_source_file_name = 1;
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.SampledObjectAlloc = at_sample;
    callbacks.ObjectFree = at_free;
    if ((*env)->AddCapabilities(env, &capabilities) != JVMTI_ERROR_NONE ||
        (*env)->SetHeapSamplingInterval(env, bytes) != JVMTI_ERROR_NONE ||
        (*env)->SetEventCallbacks(env, &callbacks, (jint)sizeof callbacks) != JVMTI_ERROR_NONE) {
        (*env)->DisposeEnvironment(env);
        return 0;
    }
    *found = env;
    return 1;
}

static jint start(JavaVM *vm, const char *how) {
    jvmtiEnv *env = NULL;
    int bytes = 0, secs = 0;
    if (sscanf(how, "%d:%d", &bytes, &secs) != 2 || bytes < 0 || secs <= 0) return UNKNOWN_OPTION;
    if (tools != NULL && now_secs() <= until_secs) return IN_USE;
    stop();
    if (!open_tools(vm, &env, bytes)) return NO_SAMPLES;
    pthread_mutex_lock(&lock);
    sites = calloc(MOST_SITES, sizeof *sites);
    interval = bytes;
    dropped = 0;
    until_secs = now_secs() + secs;
    tools = sites == NULL ? NULL : env;
    pthread_mutex_unlock(&lock);
    if (tools == NULL) {
        (*env)->DisposeEnvironment(env);
        return NO_SAMPLES;
    }
    listen_to(env, JVMTI_ENABLE);
    return 0;
}

static int write_all(const char *path, const char *text, size_t size) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    size_t done = 0;
    if (fd < 0) return 0;
    while (done < size) {
        ssize_t wrote = write(fd, text + done, size - done);
        if (wrote <= 0) break;
        done += (size_t)wrote;
    }
    return close(fd) == 0 && done == size;
}

static jint finish(const char *path) {
    char *text = NULL;
    size_t size = 0;
    FILE *out;
    int written = 0;
    if (tools == NULL || sites == NULL) return NOT_RUNNING;
    (*tools)->SetEventNotificationMode(tools, JVMTI_DISABLE, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, NULL);
    (*tools)->ForceGarbageCollection(tools);
    /* This also has the JVM report what it has collected and not reported yet. */
    (*tools)->SetEventNotificationMode(tools, JVMTI_DISABLE, JVMTI_EVENT_OBJECT_FREE, NULL);
    out = open_memstream(&text, &size);
    if (out != NULL) {
        pthread_mutex_lock(&lock);
        fprintf(out, "gcspy-samples 1 %lld %lld\n", (long long)interval, (long long)dropped);
        for (int i = 0; i < used; i++)
            fprintf(out, "%lld\t%.0f\t%lld\t%.0f\t%s%s\n", (long long)sites[i].live, sites[i].live_bytes, (long long)sites[i].all,
                    sites[i].all_bytes, sites[i].type, sites[i].text);
        pthread_mutex_unlock(&lock);
        written = fclose(out) == 0 && write_all(path, text, size);
        free(text);
    }
    stop();
    return written ? 0 : NOT_WRITTEN;
}

JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *options, void *reserved) {
    (void)reserved;
    if (options == NULL) return UNKNOWN_OPTION;
    if (strncmp(options, "start:", 6) == 0) return start(vm, options + 6);
    if (strncmp(options, "finish:", 7) == 0) return finish(options + 7);
    if (strcmp(options, "stop") == 0) {
        stop();
        return 0;
    }
    return UNKNOWN_OPTION;
}
