/* Waits in a system call with known values in all registers, again and again, and compares them afterwards.
 *
 * library_load_target CALL: 0 read of a pipe, 1 poll, 2 nanosleep, 3 epoll_wait, 4 the same, where EINTR
 * is not wrong: the kernel returns it after any stop by a debugger that does not change registers. A second thread allocates and frees all the time.
 * For each line of its input (with CALL 0: each byte) it says how many calls came back, how many of them with other values in
 * registers, errno or result, and how many allocations there were. SIGUSR1 is handled by waiting for ever. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long allocated;
static unsigned long calls, wrong;

static void *work(void *nothing)
{
    for (;;) {
        char *volatile made = malloc(1 + allocated % 5000);
        made[0] = 1;
        free(made);
        allocated++;
    }
    return nothing;
}

static void wait_in_handler(int number)
{
    (void)number;
    for (;;)
        pause();
}

struct values { uint64_t general[10]; uint64_t vector[16][2]; };
static struct values before, after;

/* A system call with values of `before` in all registers that it keeps; those afterwards are in `after`. */
static long call(long number, long a, long b, long c, long d)
{
    long result;
    register long r10 __asm__("r10") = d;
    __asm__ volatile(
        "push %%rbp\n\tpush %%rbx\n\tpush %%r12\n\tpush %%r13\n\tpush %%r14\n\tpush %%r15\n\t"
        "mov %%rax, %%rbp\n\t"
        "lea before(%%rip), %%rax\n\t"
        "mov 0(%%rax), %%rbx\n\tmov 8(%%rax), %%r8\n\tmov 16(%%rax), %%r9\n\tmov 24(%%rax), %%r12\n\t"
        "mov 32(%%rax), %%r13\n\tmov 40(%%rax), %%r14\n\tmov 48(%%rax), %%r15\n\t"
        "movdqu 80(%%rax), %%xmm0\n\tmovdqu 96(%%rax), %%xmm1\n\tmovdqu 208(%%rax), %%xmm8\n\tmovdqu 320(%%rax), %%xmm15\n\t"
        "mov %%rbp, %%rax\n\t"
        "movq $0x1234567, -64(%%rsp)\n\t" /* in the red zone */
        "syscall\n\t"
        "mov %%rax, %%rbp\n\t"
        "lea after(%%rip), %%rax\n\t"
        "mov %%rbx, 0(%%rax)\n\tmov %%r8, 8(%%rax)\n\tmov %%r9, 16(%%rax)\n\tmov %%r12, 24(%%rax)\n\t"
        "mov %%r13, 32(%%rax)\n\tmov %%r14, 40(%%rax)\n\tmov %%r15, 48(%%rax)\n\t"
        "movdqu %%xmm0, 80(%%rax)\n\tmovdqu %%xmm1, 96(%%rax)\n\tmovdqu %%xmm8, 208(%%rax)\n\tmovdqu %%xmm15, 320(%%rax)\n\t"
        "mov -64(%%rsp), %%rbx\n\tmov %%rbx, 56(%%rax)\n\t"
        "mov %%rbp, %%rax\n\t"
        "pop %%r15\n\tpop %%r14\n\tpop %%r13\n\tpop %%r12\n\tpop %%rbx\n\tpop %%rbp\n\t"
        : "=a"(result)
        : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
        : "rcx", "r8", "r9", "r11", "memory", "xmm0", "xmm1", "xmm8", "xmm15");
    return result;
}

static long wait_once(int way, int epoll)
{
    static char byte;
    static struct epoll_event event;
    struct timespec time = {0, 20000000};
    struct pollfd none = {-1, 0, 0};
    switch (way) {
    case 0: return call(0, 0, (long)&byte, 1, 0) == 1;
    case 1: return call(7, (long)&none, 1, 20, 0) == 0;
    case 2: return call(35, (long)&time, 0, 0, 0) == 0;
    case 3: return call(232, epoll, (long)&event, 1, 20) == 0;
    default: {
        long result = call(232, epoll, (long)&event, 1, 20);
        return result == 0 || result == -EINTR;
    }
    }
}

int main(int count, char **arguments)
{
    int way = count > 1 ? atoi(arguments[1]) : 0, epoll = epoll_create1(0);
    pthread_t thread;
    signal(SIGUSR1, wait_in_handler);
    pthread_create(&thread, 0, work, 0);
    for (size_t i = 0; i < sizeof before / 8; i++)
        ((uint64_t *)&before)[i] = 0x9e3779b97f4a7c15ull * (i + 1);
    before.general[7] = 0x1234567;
    for (;;) {
        memset(&after, 0, sizeof after);
        errno = 77;
        int fine = wait_once(way, epoll) && errno == 77;
        for (int i = 0; i < 8; i++)
            fine &= before.general[i] == after.general[i];
        static const int vectors[] = {0, 1, 8, 15};
        for (int i = 0; i < 4; i++)
            fine &= !memcmp(before.vector[vectors[i]], after.vector[vectors[i]], 16);
        calls++, wrong += !fine;
        struct pollfd in = {0, POLLIN, 0};
        char line[8];
        if (way == 0 || (poll(&in, 1, 0) == 1 && read(0, line, sizeof line) > 0)) {
            char text[100];
            int made = snprintf(text, sizeof text, "%lu %lu %lu\n", calls, wrong, allocated);
            if (write(1, text, made) != made)
                return 1;
        }
    }
}
