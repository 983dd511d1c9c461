/* An agent of a JVM that comes to gcspy and says what is not so; the environment's LIES has a letter for each lie, in order.
 *
 * Options: at:PATH. It connects to PATH, again after each lie; the last one it repeats. It needs no headers of a JVM.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct hello { char magic[8]; uint16_t protocol, flags; uint32_t pad; uint64_t waits_at; };
struct event { uint8_t kind, generation, pad[2]; uint32_t thread; uint64_t number, time; int64_t collected, uncollectable; };

static struct sockaddr_un place = {AF_UNIX, ""};
static struct pollfd waiting[2];

static uint64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

/* Send bytes as slowly as somebody would who wants us to wait for the rest. */
static void drip(int line, const char *bytes, size_t size) {
    for (size_t i = 0; i < size && send(line, bytes + i, 1, MSG_NOSIGNAL) == 1; i++) usleep(10000);
}

static void greet(int line, char lie, int timer, int memory) {
    struct hello said = {"gcspystb", lie == 'p' ? 99 : 2, 0, 0, (uint64_t)(uintptr_t)waiting};
    struct iovec part = {&said, lie == 'g' ? 5 : sizeof said};
    union { char bytes[CMSG_SPACE(2 * sizeof(int))]; struct cmsghdr align; } room;
    struct msghdr message = {0};
    memset(&room, 0, sizeof room);
    if (lie == 'm') memcpy(said.magic, "GET / HT", 8);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (lie != 'd') {
        message.msg_control = room.bytes;
        message.msg_controllen = sizeof room.bytes;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        int both[2] = {timer, memory};
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof both);
        memcpy(CMSG_DATA(head), both, sizeof both);
    }
    sendmsg(line, &message, MSG_NOSIGNAL);
}

static void lie_once(int line, char lie) {
    int memory = (int)syscall(SYS_memfd_create, "liar", 3u), timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    if (lie == 'z') { close(memory); memory = open("/dev/zero", O_RDWR); }
    else if (ftruncate(memory, lie == 's' ? 8 : 4096) != 0) return;
    if (lie != 'u' && lie != 'z') fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK);
    uint64_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    char packet[100000] = {0};
    struct event said = {0, 0, {0}, (uint32_t)syscall(SYS_gettid), 1, now(), 0, 0};
    if (lie == 'b') drip(line, (const char *)&(struct hello){"gcspystb", 2, 0, 0, 0}, sizeof(struct hello));
    else if (lie != 'q') greet(line, lie, timer, memory); /* or it is silent */
    size_t size = sizeof said;
    int tells = 1;
    switch (lie) {
    case 'c': page[0] = 1ull << 60; break;               /* collections that nobody can have had */
    case 'j': page[0] = page[1] = 1ull << 40; tells = 0; break; /* as many as can be, at once */
    case 'n': said.number = 1ull << 60; break;
    case 't': said.time = 1; break;
    case 'f': said.time = now() + 3600000000000ull; break;
    case 'k': said.kind = 7; break;
    case '3': size = 3; break;
    case 'i': tells = 0; drip(line, (const char *)&said, sizeof said); break;
    case 'r': break;                                     /* says that it waits, and does not */
    case 'l': size = sizeof packet; said.kind = 9; break; /* longer than any packet, and wrong in its beginning */
    case 'a': said.thread = 0x7fffffff; break;           /* a thread that it does not have */
    case 'e': size = 0; tells = 0; close(timer); shutdown(line, SHUT_RDWR); break;
    default: tells = 0;
    }
    memcpy(packet, &said, sizeof said);
    if (tells) send(line, packet, size, MSG_NOSIGNAL);
    const struct itimerspec late = {{0, 0}, {1000, 0}};
    char heard;
    while (lie == 'r' && recv(line, &heard, 1, MSG_DONTWAIT) != 0)
        timerfd_settime(timer, 0, &late, NULL); /* running out it would end the waiting */
    while (recv(line, &heard, 1, 0) > 0) {}
    if (page != MAP_FAILED) munmap(page, 4096);
    close(memory);
    close(timer);
}

static void *live(void *lies) {
    for (const char *lie = lies; *lie != 0;) {
        int line = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (connect(line, (struct sockaddr *)&place, sizeof place) == 0) lie_once(line, lie[1] ? *lie++ : *lie);
        else usleep(5000);
        close(line);
    }
    return NULL;
}

__attribute__((visibility("default"))) int Agent_OnLoad(void *vm, char *options, void *reserved) {
    (void)vm, (void)reserved;
    char *lies = getenv("LIES");
    if (lies == NULL || options == NULL || strncmp(options, "at:", 3) != 0) return 1;
    strncpy(place.sun_path, options + 3, sizeof place.sun_path - 1);
    pthread_t thread;
    return pthread_create(&thread, NULL, live, lies);
}
