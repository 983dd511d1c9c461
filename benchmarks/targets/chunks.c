/* A heap of COUNT chunks of BYTES in all, of which a third is freed again: chunks COUNT BYTES. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    if (count < 3)
        return 2;
    size_t chunks = strtoull(arguments[1], 0, 0), each = strtoull(arguments[2], 0, 0) / chunks;
    void **held = malloc(chunks * sizeof *held);
    if (!held)
        return 3;
    for (size_t i = 0; i < chunks; i++) {
        size_t size = each / 2 + (i * 2654435761u) % (each + 1);
        held[i] = malloc(size > 24 ? size - 8 : 16);
        if (!held[i])
            return 3;
        memset(held[i], 1, size > 24 ? size - 8 : 16);
    }
    for (size_t i = 0; i < chunks; i += 3)
        free(held[i]);
    if (write(1, "ready\n", 6) != 6)
        return 4;
    for (;;)
        pause();
}
