/* Files of code that the process has mapped: which one a program counter is in. See writer.h.
 *
 * dl_iterate_phdr takes the loader's lock, and a thread that holds that one may be waiting for ours: so ours
 * is never held when it is called. */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <sched.h>

#include "writer.h"

#define MOST_MODULES 2048
#define LONGEST_PATH 1024

struct module {
    uint64_t start, end, bias;
    const uint8_t *eh_frame_header;
    uint32_t defined;
    char path[LONGEST_PATH];
};

static struct module *modules;
static uint32_t module_count;
static atomic_flag module_lock = ATOMIC_FLAG_INIT;

static void lock(void) {
    for (int tries = 0; atomic_flag_test_and_set_explicit(&module_lock, memory_order_acquire); tries++)
        if (tries > 100) sched_yield();
}

static void unlock(void) { atomic_flag_clear_explicit(&module_lock, memory_order_release); }

void modules_forget(int in_child) {
    if (in_child) atomic_flag_clear(&module_lock); /* a thread that is not here may have had it */
    lock();
    module_count = 0;
    unlock();
}

static struct module *find(uint64_t pc) {
    for (uint32_t index = 0; index < module_count; index++)
        if (pc >= modules[index].start && pc < modules[index].end) return &modules[index];
    return NULL;
}

static int note(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size, (void)data;
    struct module found = {.start = ~0ull};
    for (int index = 0; index < info->dlpi_phnum; index++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[index];
        uint64_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD) {
            if (start < found.start) found.start = start;
            if (start + header->p_memsz > found.end) found.end = start + header->p_memsz;
        } else if (header->p_type == PT_GNU_EH_FRAME) found.eh_frame_header = (const uint8_t *)start;
    }
    if (found.start >= found.end) return 0;
    found.bias = info->dlpi_addr;
    lock();
    struct module *known = find(found.start);
    if (known == NULL && module_count < MOST_MODULES) known = &modules[module_count++], known->defined = 0;
    if (known != NULL && !(known->start == found.start && known->end == found.end && known->defined)) {
        known->start = found.start, known->end = found.end, known->bias = found.bias;
        known->eh_frame_header = found.eh_frame_header, known->defined = 0;
        size_t length = strnlen(info->dlpi_name, LONGEST_PATH - 1);
        memcpy(known->path, info->dlpi_name, length);
        known->path[length] = 0;
    }
    unlock();
    return 0;
}

static void refresh(void) {
    if (modules == NULL) {
        void *made = writer_pages(sizeof *modules * MOST_MODULES);
        if (made == NULL) return;
        lock();
        if (modules == NULL) modules = made;
        unlock();
    }
    dl_iterate_phdr(note, NULL);
}

void modules_define(struct thread *thread, uint64_t pc) {
    for (int tries = 0; tries < 2; tries++) {
        uint64_t words[3];
        char path[LONGEST_PATH];
        int found = 0, defined = 0;
        lock();
        struct module *module = find(pc);
        if (module != NULL) {
            found = 1, defined = module->defined != 0;
            module->defined = 1;
            words[0] = module->start, words[1] = module->end, words[2] = module->bias;
            if (!defined) strcpy(path, module->path);
        }
        unlock();
        if (found) {
            if (!defined) writer_meta(thread, META_MODULE, 0, words, 3, path[0] ? path : segment->program, NULL);
            return;
        }
        if (tries == 0) refresh();
    }
}

const uint8_t *modules_find(uint64_t pc, uint64_t *start, uint64_t *end) {
    for (int tries = 0; tries < 2; tries++) {
        const uint8_t *header = NULL;
        int found = 0;
        lock();
        struct module *module = find(pc);
        if (module != NULL) found = 1, header = module->eh_frame_header, *start = module->start, *end = module->end;
        unlock();
        if (found) return header;
        if (tries == 0) refresh();
    }
    return NULL;
}
