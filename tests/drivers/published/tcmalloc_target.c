/* Allocates blocks and frees a third; for each line of its input it says what tcmalloc says is in use, and free in its page heap. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *held[30000];

int main(void)
{
    int (*property)(const char *, size_t *);
    *(void **)&property = dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty");
    static char in[256], out[256];
    setvbuf(stdin, in, _IOFBF, sizeof in);
    setvbuf(stdout, out, _IOLBF, sizeof out);
    for (int i = 0; i < 30000; i++)
        held[i] = malloc(24 + i % 3000);
    for (int i = 0; i < 30000; i += 3)
        free(held[i]);
    for (int c; (c = getchar()) != EOF;) {
        size_t used = 0, free_pages = 0;
        property("generic.current_allocated_bytes", &used);
        property("tcmalloc.pageheap_free_bytes", &free_pages);
        printf("%zu %zu\n", used, free_pages);
    }
}
