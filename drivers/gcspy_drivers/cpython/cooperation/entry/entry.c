/* A library that a running Python loads (gcspy_drivers.remote.shared_library_load): it has the main thread run the file "lines" beside it.
 *
 * Nothing of Python runs when it is loaded. Py_AddPendingCall may be called at any time from any thread; the main thread runs the text when
 * it is next between two instructions. The text is read when the library is loaded: the file may be gone by then.
 *
 * Source: CPython Python/ceval_gil.c (Python/ceval.c), Py_AddPendingCall; dladdr(3).
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { LONGEST_PATH = 4096, LARGEST_TEXT = 64 << 10 };

typedef int (*Pending)(int (*)(void *), void *);
typedef int (*Run)(const char *, void *);

static int run(void *text)
{
    Run simple = (Run)dlsym(RTLD_DEFAULT, "PyRun_SimpleStringFlags");
    if (simple != NULL)
        simple(text, NULL);
    free(text);
    return 0;
}

static char *text_of(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return NULL;
    char *text = malloc(LARGEST_TEXT + 1);
    size_t size = 0;
    while (text != NULL && size < LARGEST_TEXT) {
        ssize_t more = read(file, text + size, LARGEST_TEXT - size);
        if (more <= 0)
            break;
        size += (size_t)more;
    }
    close(file);
    if (text != NULL)
        text[size] = 0;
    return text;
}

__attribute__((constructor)) static void begin(void)
{
    static const char name[] = "lines";
    char path[LONGEST_PATH];
    Dl_info info;
    Pending add = (Pending)dlsym(RTLD_DEFAULT, "Py_AddPendingCall");
    if (add == NULL || !dladdr((void *)begin, &info) || info.dli_fname == NULL)
        return;
    const char *slash = strrchr(info.dli_fname, '/');
    size_t folder = slash == NULL ? 0 : (size_t)(slash - info.dli_fname) + 1;
    if (folder == 0 || folder + sizeof name > sizeof path)
        return;
    memcpy(path, info.dli_fname, folder);
    memcpy(path + folder, name, sizeof name);
    char *text = text_of(path);
    if (text != NULL && add(run, text) != 0)
        free(text);
}
