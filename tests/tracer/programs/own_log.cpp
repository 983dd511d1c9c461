/* Programs that write down all that they allocate: `own_log LOG NAME`. */
#include <atomic>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mutex>
#include <new>

struct entry {
    uint64_t kind, address, size, thread;
};
static const uint64_t most = 1u << 21;
static entry *own_log;
static std::atomic<uint64_t> own_count;

static void begin(const char *path) {
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || ftruncate(file, most * sizeof(entry)) != 0) _exit(99);
    own_log = (entry *)mmap(0, most * sizeof(entry), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    own_count = 0;
}

static void note(uint64_t kind, void *address, uint64_t size) {
    static thread_local char here;
    uint64_t row = own_count++;
    if (row >= most) _exit(98);
    own_log[row].address = (uint64_t)address, own_log[row].size = size, own_log[row].thread = (uint64_t)&here;
    own_log[row].kind = kind;
}

template <class T> static T *own(T *pointer, uint64_t size) {
    if (pointer) note(1, (void *)pointer, size);
    return pointer;
}

static void give_up(void *pointer) {
    note(2, pointer, 0);
    free(pointer);
}

/* Not std::thread, which allocates at a site of ours. */
static void *call(void *function) {
    (*(void (**)(int))function)(((int *)function)[2]);
    return nullptr;
}

struct job {
    void (*function)(int);
    int number;
    pthread_t thread;
};

static void start(job *jobs, int count, void (*function)(int)) {
    for (int number = 0; number < count; number++) {
        jobs[number] = {function, number, 0};
        if (pthread_create(&jobs[number].thread, nullptr, call, &jobs[number])) _exit(90);
    }
}

static void join(job *jobs, int count) {
    for (int number = 0; number < count; number++) pthread_join(jobs[number].thread, nullptr);
}

static uint32_t next(uint32_t *seed) { return (*seed = *seed * 1664525u + 1013904223u) >> 8; }

static void work(int rounds, uint32_t seed) {
    void *kept[256] = {};
    for (int round = 0; round < rounds; round++) {
        uint32_t slot = next(&seed) % 256, size = next(&seed) % 2000;
        if (kept[slot]) {
            give_up(kept[slot]);
            kept[slot] = nullptr;
        } else if (round % 3 == 0) kept[slot] = own(calloc(size + 1, 3), (size + 1) * 3);
        else kept[slot] = own(malloc(size), size);
    }
}

static void resizes() {
    uint32_t seed = 7;
    void *block = nullptr;
    for (int round = 0; round < 20000; round++) {
        size_t size = next(&seed) % 5000 + 1;
        if (block) note(2, block, 0);
        block = own(realloc(block, size), size);
        if (round % 100 == 0) {
            volatile size_t never = ~(size_t)0 / 4;
            if (realloc(block, never)) _exit(97); /* it fails, and the block lives on */
        }
    }
    void *array = own(reallocarray(nullptr, 10, 20), 200);
    note(2, array, 0);
    if (realloc(array, 0)) _exit(96);
}

static void aligned() {
    for (int round = 0; round < 2000; round++) {
        void *one = own(aligned_alloc(64, 640), 640), *other = nullptr;
        if (posix_memalign(&other, 4096, 100)) _exit(95);
        own(other, 100);
        void *third = own(valloc(300), 300);
        give_up(one), give_up(other);
        if (round % 2) give_up(third);
    }
}

struct alignas(64) Wide {
    char bytes[128];
};

struct Throwing {
    Throwing() { throw 1; }
    char bytes[48];
};

static void operators() {
    for (int round = 0; round < 3000; round++) {
        int *one = own(new int, sizeof(int));
        char *many = own(new char[77], 77);
        Wide *wide = own(new Wide, sizeof(Wide));
        Wide *row = own(new (std::nothrow) Wide[3], 3 * sizeof(Wide));
        note(2, one, 0);
        delete one;
        note(2, many, 0);
        delete[] many;
        note(2, wide, 0);
        delete wide;
        if (round % 3) {
            note(2, row, 0);
            delete[] row;
        }
        volatile size_t never = ~(size_t)0 / 4;
        if (round % 100 == 0) {
            try {
                char *impossible = new char[never];
                own(impossible, never);
            } catch (const std::bad_alloc &) {
            }
            if (new (std::nothrow) char[never]) _exit(94);
        }
    }
}

static std::mutex line;
static void *passed[50];
static uint32_t passed_at;

static void pass_on(int number) {
    uint32_t seed = number;
    for (int round = 0; round < 5000; round++) {
        size_t size = next(&seed) % 200;
        void *one = own(malloc(size), size), *other;
        {
            std::lock_guard<std::mutex> hold(line);
            void **place = &passed[passed_at++ % 50];
            other = *place, *place = one;
        }
        if (other) give_up(other);
    }
}

static void passing() {
    job jobs[4];
    start(jobs, 4, pass_on);
    join(jobs, 4);
}

static void short_work(int number) { work(60, number); }

static void long_work(int number) { work(20000, number + 9); }

static void storm() {
    job jobs[16];
    for (int round = 0; round < 40; round++) start(jobs, 16, short_work), join(jobs, 16);
}

static std::atomic<int> handled;

static void handler(int) {
    handled++;
    void *one = own(malloc(33), 33);
    give_up(one);
}




static pthread_t target;
static std::atomic<bool> over;

static void annoy(int) {
    while (!over) pthread_kill(target, SIGUSR1), usleep(50);
}

static void signals() {
    /* Safe only since nothing but the hooks is interrupted: this thread does not use malloc itself meanwhile. */
    struct sigaction action = {};
    action.sa_handler = handler;
    sigaction(SIGUSR1, &action, nullptr);
    target = pthread_self(), over = false;
    job other;
    start(&other, 1, annoy);
    while (handled < 300) {
        void *memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(memory, 4096);
    }
    over = true;
    join(&other, 1);
}

static void forks(const char *path) {
    work(1000, 1);
    for (int number = 0; number < 3; number++) {
        pid_t child = fork();
        if (child == 0) {
            char own_path[4096];
            snprintf(own_path, sizeof own_path, "%s.%d", path, (int)getpid());
            begin(own_path);
            work(1000, number);
            job other;
            start(&other, 1, short_work), join(&other, 1);
            _exit(0);
        }
        work(500, number);
        waitpid(child, nullptr, 0);
    }
}

static pthread_key_t key;

static void at_thread_end(void *block) {
    give_up(block);
    static thread_local int rounds;
    if (rounds++ < 2) pthread_setspecific(key, own(malloc(99), 99));
}

struct AtExit {
    void *block;
    AtExit() : block(nullptr) {}
    ~AtExit() {
        if (block) give_up(block);
        if (own_log) own(malloc(123), 123);
    }
};
static AtExit at_exit;
static thread_local AtExit of_thread;

static void leave_blocks(int) {
    of_thread.block = own(malloc(55), 55);
    pthread_setspecific(key, own(malloc(66), 66));
}

static void ends() {
    pthread_key_create(&key, at_thread_end);
    at_exit.block = own(malloc(77), 77);
    job jobs[20];
    start(jobs, 20, leave_blocks), join(jobs, 20);
}

static void plugins(const char *library) {
    for (int round = 0; round < 20; round++) {
        void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        if (!handle) _exit(93);
        void *(*give)(size_t) = (void *(*)(size_t))dlsym(handle, "plugin_allocate");
        void *one = own(give(100 + round), 100 + round);
        if (round % 2) give_up(one);
        dlclose(handle);
    }
}

static void allocate_and_free(size_t size) {
    void *volatile one = malloc(size); /* not optimised away */
    free(one);
}

/* Some seconds, so that its trace is cut. */
static void slow() {
    void *kept[70];
    for (int round = 0; round < 70; round++) {
        kept[round] = malloc(round * 100);
        for (int again = 0; again < 100; again++) allocate_and_free(again);
        usleep(70000);
    }
    for (int round = 0; round < 35; round++) free(kept[round]);
}

/* Allocates until a file is there; the first entry of the log counts rounds. */
static void endless(const char *over, const char *done) {
    while (access(over, F_OK)) {
        for (int round = 0; round < 1000; round++) allocate_and_free(round);
        own_log[0].size++;
    }
    close(open(done, O_CREAT | O_WRONLY, 0600));
}

/* Before main, and before the log: kept until it is there. */
static void *early;
__attribute__((constructor)) static void at_start() { early = malloc(4242); }

int main(int count, char **arguments) {
    if (count < 3) return 92;
    begin(arguments[1]);
    own(early, 4242);
    const char *name = arguments[2];
    if (!strcmp(name, "single")) work(30000, 1);
    else if (!strcmp(name, "resizes")) resizes();
    else if (!strcmp(name, "aligned")) aligned();
    else if (!strcmp(name, "operators")) operators();
    else if (!strcmp(name, "passing")) passing();
    else if (!strcmp(name, "storm")) storm();
    else if (!strcmp(name, "signals")) signals();
    else if (!strcmp(name, "forks")) forks(arguments[1]);
    else if (!strcmp(name, "ends")) ends();
    else if (!strcmp(name, "plugins")) plugins(arguments[3]);
    else if (!strcmp(name, "slow")) slow();
    else if (!strcmp(name, "endless")) endless(arguments[3], arguments[4]);
    else if (!strcmp(name, "exits")) work(5000, 2), _exit(7);
    else if (!strcmp(name, "killed")) {
        job others[2];
        start(others, 2, long_work);
        work(20000, 3);
        join(others, 2);
        kill(getpid(), SIGKILL);
    } else return 91;
    return 0;
}
