/* Hands a userfaultfd of this process to gcspy, once, when the library is loaded, and keeps no copy.
 *
 * With it gcspy protects pages from outside, and the kernel notes which were written. The path of
 * gcspy's socket is written over the mark below before the library is loaded; so nothing is looked up
 * here, nothing allocated, and nothing waits. Source: userfaultfd(2), unix(7). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { USER_MODE_ONLY = 1 };

static const volatile char socket_path[sizeof(((struct sockaddr_un *)0)->sun_path)] = "GCSPY-PATH-OF-THE-SOCKET";

static void send_to(int line, int fd, int32_t number)
{
    union {
        char room[CMSG_SPACE(sizeof fd)];
        struct cmsghdr align;
    } control;
    struct iovec said = {&number, sizeof number};
    struct msghdr message = {0};
    message.msg_iov = &said;
    message.msg_iovlen = 1;
    if (fd >= 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
        struct cmsghdr *part = CMSG_FIRSTHDR(&message);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(part), &fd, sizeof fd);
    }
    (void)!sendmsg(line, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

__attribute__((constructor)) static void hand_over(void)
{
    int before = errno;
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    for (unsigned at = 0; at + 1 < sizeof place.sun_path && socket_path[at]; at++)
        place.sun_path[at] = socket_path[at];
    int line = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (line >= 0 && !connect(line, (struct sockaddr *)&place, sizeof place)) {
        int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY);
        send_to(line, fd, fd < 0 ? errno : 0);
        if (fd >= 0)
            close(fd);
    }
    if (line >= 0)
        close(line);
    errno = before;
}
