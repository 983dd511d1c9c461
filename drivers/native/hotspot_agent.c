/* The stub for HotSpot: a JVMTI agent that tells of the start and the end of each collection, at the safepoint, and waits.
 *
 * It speaks what the stub for CPython speaks (gcspy_drivers/cpython/stub.py has the bytes, gcspy_drivers/cooperative the other end): a
 * hello with a timer and a shared page, events of 40 bytes, an answer of one byte. What bounds the waiting is that timer, which the
 * sidecar winds up again and again: 2 s after the last sign of life the JVM goes on, and is not held again before the sidecar has
 * answered. If the sidecar ends, it goes on at once. Nothing is sent that would have to wait for room.
 *
 * In the callbacks there are system calls and nothing else: no JVMTI, no JNI, no memory. Knows no collector and no heap.
 * One binary for Java 8 to 25: everything used is in JVMTI 1.1.
 *
 * Options, for -agentpath and for loading it into a running JVM:
 *     connect:PATH   connect to a sidecar that listens there (running JVM)
 *     fd:N           talk through a socket that was inherited, and wait for one byte before the program begins (-agentpath)
 *     at:PATH        look at each collection whether a sidecar of the same user, or of root, listens there (-agentpath);
 *                    %p in it is the JVM's own process id
 *     stop           leave: no events, no descriptors, no memory
 *
 * Source: JVM Tool Interface, GarbageCollectionStart; timerfd_create(2), memfd_create(2), unix(7) SOCK_SEQPACKET and SCM_RIGHTS.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <jvmti.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#endif

enum { PROTOCOL = 2, WAITS = 1, DEADLINE_SECS = 2, LOOK_EVERY = 64, PAGE_BYTES = 4096, TRIES = 5000 };
enum { AT_ONCE = MSG_DONTWAIT | MSG_NOSIGNAL };
enum { STARTS, ENDS, WANT_STARTS, WANT_ENDS, NOT_BEFORE, LEAVE }; /* words of the page; from WANT_STARTS on the sidecar writes */

/* What Agent_OnAttach returns, and the JVM tells; gcspy_drivers/hotspot/agent.py has the words. */
enum { UNKNOWN_OPTION = 101, IN_USE = 102, NOT_CONNECTED = 103, NO_EVENTS = 104, NOT_NOW = 105 };

struct hello {
    char magic[8];
    uint16_t protocol, flags;
    uint32_t process;
    uint64_t waits_at;
};

struct event {
    uint8_t kind, generation, zero[2];
    uint32_t thread;
    uint64_t number, nanos;
    int64_t collected, uncollectable;
};

static jvmtiEnv *tools;
static int busy; /* one thread at a time has what follows; a callback that finds it taken only counts in `passed` */
static uint64_t passed; /* what found it taken and is not in the page yet: starts, and in the upper half ends */
static int line = -1, timer = -1, given = -1;
static volatile uint64_t *page;
static struct pollfd waits[2];
static int told, inside;
static struct sockaddr_un meeting; /* where a sidecar may come to listen; empty: nowhere */
static uint64_t looked_nanos;

static int taken(void) { return __atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE); }
static void give(void) { __atomic_store_n(&busy, 0, __ATOMIC_RELEASE); }

static int take_patiently(void) {
    const struct timespec nap = {0, 1000000};
    for (int i = 0; i < TRIES; i++) {
        if (!taken()) return 1;
        nanosleep(&nap, NULL);
    }
    return 0;
}

static uint64_t now_nanos(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void leave(void) {
    if (line < 0) return;
    close(line);
    if (timer >= 0) close(timer);
    if (page != NULL) munmap((void *)page, PAGE_BYTES);
    line = timer = -1;
    page = NULL;
    told = 0;
    prctl(PR_SET_PTRACER, 0, 0, 0, 0);
}

/* Whether the sidecar has gone, or said so: 0 bytes of an answer are the end of the connection. */
static int gone(int flags) {
    char answer;
    return recv(line, &answer, 1, AT_ONCE | flags) == 0;
}

static int say_hello(uint16_t flags) {
    struct hello hello = {"gcspystb", PROTOCOL, flags, (uint32_t)getpid(), (uint64_t)(uintptr_t)waits};
    union { struct cmsghdr header; char room[CMSG_SPACE(2 * sizeof(int))]; } control;
    struct iovec whole = {&hello, sizeof hello};
    struct msghdr message = {.msg_iov = &whole, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    int memory = (int)syscall(SYS_memfd_create, "gcspy", 3u /* MFD_CLOEXEC, MFD_ALLOW_SEALING */);
    int sent = 0;
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    if (memory >= 0 && timer >= 0 && ftruncate(memory, PAGE_BYTES) == 0 &&
        fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) == 0) { /* whoever has it cannot take it away under our feet */
        void *place = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
        page = place == MAP_FAILED ? NULL : place;
        memset(&control, 0, sizeof control);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(2 * sizeof(int));
        memcpy(CMSG_DATA(&control.header), (int[]){timer, memory}, 2 * sizeof(int));
        waits[0] = (struct pollfd){line, POLLIN, 0};
        waits[1] = (struct pollfd){timer, POLLIN, 0};
        sent = page != NULL && sendmsg(line, &message, AT_ONCE) == (ssize_t)sizeof hello;
    }
    if (memory >= 0) close(memory);
    if (!sent) leave();
    return sent;
}

/* Take a connected socket as the line; where the kernel asks (Yama), let its other end read this process, before the hello. */
static int begin(int fd, uint16_t flags) {
    struct ucred peer = {0, 0, 0};
    socklen_t size = sizeof peer;
    line = fd;
    told = inside = 0;
    __atomic_store_n(&passed, 0, __ATOMIC_RELAXED); /* nobody was there for what came before */
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0)
        prctl(PR_SET_PTRACER, (unsigned long)peer.pid, 0, 0, 0);
    return say_hello(flags);
}

static int connect_to(const struct sockaddr_un *where, int only_own) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return 0;
    if (connect(fd, (const struct sockaddr *)where, sizeof *where) == 0) {
        int known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
        if (!only_own || (known && (peer.uid == geteuid() || peer.uid == 0))) return begin(fd, 0);
    }
    close(fd);
    return 0;
}

static int path_of(struct sockaddr_un *where, const char *path) {
    const char *number = strstr(path, "%p");
    int before = (int)(number == NULL ? strlen(path) : (size_t)(number - path)), length;
    memset(where, 0, sizeof *where);
    length = number == NULL
                 ? snprintf(where->sun_path, sizeof where->sun_path, "%s", path)
                 : snprintf(where->sun_path, sizeof where->sun_path, "%.*s%d%s", before, path, (int)getpid(), number + 2);
    if (length <= 0 || length >= (int)sizeof where->sun_path) return 0;
    where->sun_family = AF_UNIX;
    return 1;
}

/* ------------------------------------------------------------------ at the safepoint: system calls only */

static int wanted(int kind, uint64_t number, struct event *event) {
    uint64_t period = page[WANT_STARTS + kind];
    if (told) {
        char answer;
        ssize_t got = recv(line, &answer, 1, AT_ONCE);
        if (got == 0) leave();
        if (got != 1) return 0; /* it was silent for too long: it is not waited for before it has answered */
        told = 0;
    }
    if (period == 0 || number % period != 0) {
        if (number % LOOK_EVERY == 0 && gone(0)) leave();
        return 0;
    }
    event->nanos = now_nanos();
    return event->nanos >= page[NOT_BEFORE];
}

static void tell(int kind) {
    const struct itimerspec deadline = {{0, 0}, {DEADLINE_SECS, 0}};
    struct event event = {.kind = (uint8_t)kind};
    char answer;
    ssize_t got;
    if (page[LEAVE]) {
        leave();
        return;
    }
    event.number = page[kind] = page[kind] + 1;
    if (!wanted(kind, event.number, &event)) return;
    event.thread = (uint32_t)syscall(SYS_gettid);
    timerfd_settime(timer, 0, &deadline, NULL);
    if (send(line, &event, sizeof event, AT_ONCE) != (ssize_t)sizeof event) return; /* counted, and no answer will come */
    told = 1;
    while (poll(waits, 2, -1) < 0 && errno == EINTR) continue;
    got = recv(line, &answer, 1, AT_ONCE);
    if (got == 0) leave();
    if (got == 1) told = 0;
}

/* Have the page count what found us busy: starts and ends come in turn, and an end too many is of a collection before us. */
static void count_passed(void) {
    uint64_t both = __atomic_exchange_n(&passed, 0, __ATOMIC_RELAXED);
    uint32_t starts = (uint32_t)both, ends = (uint32_t)(both >> 32);
    if (line < 0) return;
    if (ends > starts + (uint32_t)inside) ends = starts + (uint32_t)inside;
    page[STARTS] += starts;
    page[ENDS] += ends;
    inside += (int)starts - (int)ends;
}

static void happened(int kind) {
    if (taken()) { /* somebody attaches or detaches at this very moment */
        __atomic_add_fetch(&passed, kind ? (uint64_t)1 << 32 : 1, __ATOMIC_RELAXED);
        return;
    }
    count_passed();
    if (line < 0 && meeting.sun_family == AF_UNIX && kind == 0 && now_nanos() - looked_nanos > 50000000u) {
        connect_to(&meeting, 1);
        looked_nanos = now_nanos();
    }
    /* An end without its start is of a collection that began before we were there. */
    if (line >= 0 && inside == kind) {
        inside = !kind;
        tell(kind);
    }
    give();
}

static void JNICALL at_start(jvmtiEnv *env) {
    (void)env;
    happened(0);
}

static void JNICALL at_end(jvmtiEnv *env) {
    (void)env;
    happened(1);
}

/* ------------------------------------------------------------------ anywhere else */

static void listen_to(jvmtiEnv *env, jvmtiEventMode mode) {
    (*env)->SetEventNotificationMode(env, mode, JVMTI_EVENT_GARBAGE_COLLECTION_FINISH, NULL);
    (*env)->SetEventNotificationMode(env, mode, JVMTI_EVENT_GARBAGE_COLLECTION_START, NULL);
}

/* The VM is there, and the program has not begun: the sidecar looks at it, and then says that it may. */
static void JNICALL at_birth(jvmtiEnv *env, JNIEnv *jni, jthread thread) {
    char answer;
    (void)jni, (void)thread;
    if (given >= 0 && !taken()) {
        int fd = given;
        given = -1;
        if (begin(fd, WAITS)) {
            ssize_t got;
            do got = recv(line, &answer, 1, MSG_NOSIGNAL);
            while (got < 0 && errno == EINTR);
            if (got != 1) leave();
        }
        give();
    }
    listen_to(env, JVMTI_ENABLE);
}

static int open_tools(JavaVM *vm) {
    jvmtiCapabilities capabilities;
    jvmtiEventCallbacks callbacks;
    jvmtiEnv *env = NULL;
    if (tools != NULL) return 1;
    if ((*vm)->GetEnv(vm, (void **)&env, JVMTI_VERSION_1_1) != JNI_OK || env == NULL) return 0;
    memset(&capabilities, 0, sizeof capabilities);
    capabilities.can_generate_garbage_collection_events = 1;
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.GarbageCollectionStart = at_start;
    callbacks.GarbageCollectionFinish = at_end;
    callbacks.VMInit = at_birth;
    if ((*env)->AddCapabilities(env, &capabilities) != JVMTI_ERROR_NONE ||
        (*env)->SetEventCallbacks(env, &callbacks, (jint)sizeof callbacks) != JVMTI_ERROR_NONE) {
        (*env)->DisposeEnvironment(env);
        return 0;
    }
    tools = env;
    return 1;
}

/* No events first: then no callback begins any more, and one that is on its way is waited for. */
static jint stop(void) {
    jvmtiEnv *env = tools;
    if (env != NULL) listen_to(env, JVMTI_DISABLE);
    if (!take_patiently()) return NOT_NOW;
    leave();
    tools = NULL;
    meeting.sun_family = 0;
    give();
    if (env != NULL) (*env)->DisposeEnvironment(env);
    return 0;
}

static jint join(JavaVM *vm, const char *path) {
    struct sockaddr_un where;
    jint result = 0;
    if (!path_of(&where, path)) return UNKNOWN_OPTION;
    if (!take_patiently()) return NOT_NOW;
    if (line >= 0 && (page[LEAVE] || gone(MSG_PEEK))) leave();
    if (line >= 0) {
        count_passed();
        result = IN_USE;
    } else if (!connect_to(&where, 0)) result = NOT_CONNECTED;
    give();
    if (result != 0) return result;
    if (!open_tools(vm)) {
        stop();
        return NO_EVENTS;
    }
    listen_to(tools, JVMTI_ENABLE);
    return 0;
}

JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *options, void *reserved) {
    (void)reserved;
    if (options != NULL && strncmp(options, "connect:", 8) == 0) return join(vm, options + 8);
    if (options != NULL && strcmp(options, "stop") == 0) return stop();
    return UNKNOWN_OPTION;
}

/* Whatever is wrong here, the program begins: it is not for us to keep it from that. */
JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved) {
    (void)reserved;
    if (options == NULL || !open_tools(vm)) return 0;
    if (strncmp(options, "fd:", 3) == 0) {
        given = atoi(options + 3);
        fcntl(given, F_SETFD, FD_CLOEXEC);
    } else if (strncmp(options, "at:", 3) == 0)
        path_of(&meeting, options + 3);
    (*tools)->SetEventNotificationMode(tools, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL);
    return 0;
}
