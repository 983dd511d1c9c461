/* Walking a thread's stack by the call frame information of .eh_frame, with what each program counter says kept. See writer.h.
 *
 * For x86-64. Exact where the frame's address (CFA) is a distance from the stack pointer or from rbp, or is stored at one from rbp,
 * and for signal frames: that is what compilers make. Elsewhere the walk ends, and the stack is counted as cut.
 * No memory outside of the mapping of the stack is read.
 *
 * Source: System V ABI for AMD64, 3.7 and 6.2; Linux Standard Base 5.0, 10.6 (.eh_frame, .eh_frame_hdr); DWARF 4, 6.4. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "writer.h"

#define RULES 8192u
#define RBP 6
#define RSP 7
#define RETURN_ADDRESS 16

enum base { FROM_NOTHING = 0, FROM_RSP, FROM_RBP, STORED_FROM_RBP, SIGNAL_FRAME, OUTERMOST };
enum saved { SAME = 0, AT_CFA, AT_RBP };

/* What the code at a program counter does: 16 bytes. */
struct rule {
    uint64_t pc;
    int32_t cfa;      /* distance */
    int32_t base : 4; /* enum base */
    int32_t saved : 4;
    int32_t rbp : 24; /* where the caller's rbp is, from the CFA */
};

void unwinder_forget(struct thread *thread) {
    thread->walked_count = 0;
    if (thread->rules) madvise(thread->rules, sizeof(struct rule) * RULES, MADV_DONTNEED);
}

#if defined(__x86_64__)

/* Bytes of a module, read within its bounds. */
struct reader {
    const uint8_t *at, *end;
    int bad;
};

static uint64_t fixed(struct reader *reader, size_t bytes) {
    uint64_t value = 0;
    if (reader->bad || (size_t)(reader->end - reader->at) < bytes) return reader->bad = 1, 0;
    memcpy(&value, reader->at, bytes);
    reader->at += bytes;
    return value;
}

static uint64_t leb(struct reader *reader, int sign) {
    uint64_t value = 0, byte;
    unsigned shift = 0;
    do {
        byte = fixed(reader, 1);
        if (shift < 64) value |= (byte & 127) << shift;
        shift += 7;
    } while (byte & 128 && !reader->bad);
    if (sign && shift < 64 && byte & 64) value |= ~0ull << shift;
    return value;
}

static uint64_t pointer(struct reader *reader, uint8_t encoding) {
    uint64_t at = (uint64_t)reader->at, value;
    switch (encoding & 15) {
    case 0: case 4: case 12: value = fixed(reader, 8); break;
    case 1: value = leb(reader, 0); break;
    case 2: value = fixed(reader, 2); break;
    case 3: value = fixed(reader, 4); break;
    case 9: value = leb(reader, 1); break;
    case 10: value = (uint64_t)(int64_t)(int16_t)fixed(reader, 2); break;
    case 11: value = (uint64_t)(int64_t)(int32_t)fixed(reader, 4); break;
    default: return reader->bad = 1, 0;
    }
    switch (encoding & 0x70) {
    case 0: break;
    case 0x10: value = value ? value + at : 0; break;
    default: reader->bad = 1;
    }
    return value;
}

static void skip(struct reader *reader, uint64_t bytes) {
    if (reader->bad || (uint64_t)(reader->end - reader->at) < bytes) reader->bad = 1;
    else reader->at += bytes;
}

struct columns {
    int64_t cfa_register; /* -1: stored at a distance from rbp; -2: by an expression not known here */
    int64_t cfa, rbp;
    enum saved saved;
    int outermost, strange;
};

struct common {
    uint64_t code_step;
    int64_t data_step;
    uint8_t encoding;
    int signal, augmented;
    struct reader program;
};

/* Whether an expression is: what is at rbp + distance (followed by a load, or not). */
static int from_rbp(struct reader expression, int load, int64_t *distance) {
    if (fixed(&expression, 1) != 0x70 + RBP) return 0;
    *distance = (int64_t)leb(&expression, 1);
    if (load && fixed(&expression, 1) != 0x06) return 0;
    return !expression.bad && expression.at == expression.end;
}

static void run(struct reader program, const struct common *common, uint64_t place, uint64_t pc, struct columns *now, const struct columns *initial) {
    struct columns kept[16];
    int depth = 0;
    while (program.at < program.end && !program.bad) {
        uint8_t byte = (uint8_t)fixed(&program, 1), low = byte & 63;
        uint64_t number, length;
        int64_t distance;
        struct reader expression;
        switch (byte >> 6) {
        case 1:
            place += low * common->code_step;
            if (place > pc) return;
            continue;
        case 2:
            distance = (int64_t)leb(&program, 0) * common->data_step;
            if (low == RBP) now->saved = AT_CFA, now->rbp = distance;
            else if (low == RETURN_ADDRESS) now->outermost = 0, now->strange |= distance != -8;
            else if (low == RSP) now->strange = 1;
            continue;
        case 3:
            if (low == RBP) now->saved = initial->saved, now->rbp = initial->rbp;
            continue;
        }
        switch (byte) {
        case 0x00: break; /* nop */
        case 0x01: place = pointer(&program, common->encoding); if (place > pc) return; break;
        case 0x02: place += fixed(&program, 1) * common->code_step; if (place > pc) return; break;
        case 0x03: place += fixed(&program, 2) * common->code_step; if (place > pc) return; break;
        case 0x04: place += fixed(&program, 4) * common->code_step; if (place > pc) return; break;
        case 0x05: case 0x11: /* offset_extended(_sf) */
            number = leb(&program, 0);
            distance = (int64_t)leb(&program, byte == 0x11) * common->data_step;
            if (number == RBP) now->saved = AT_CFA, now->rbp = distance;
            else if (number == RETURN_ADDRESS) now->strange |= distance != -8;
            break;
        case 0x06: number = leb(&program, 0); if (number == RBP) now->saved = initial->saved, now->rbp = initial->rbp; break;
        case 0x07: number = leb(&program, 0); if (number == RETURN_ADDRESS) now->outermost = 1; break; /* undefined */
        case 0x08: number = leb(&program, 0); if (number == RBP) now->saved = SAME; break;
        case 0x09: number = leb(&program, 0); leb(&program, 0); if (number == RBP || number == RETURN_ADDRESS) now->strange = 1; break;
        case 0x0a: if (depth < 16) kept[depth++] = *now; else program.bad = 1; break;
        case 0x0b: if (depth) *now = kept[--depth]; else program.bad = 1; break;
        case 0x0c: now->cfa_register = (int64_t)leb(&program, 0); now->cfa = (int64_t)leb(&program, 0); break;
        case 0x0d: now->cfa_register = (int64_t)leb(&program, 0); break;
        case 0x0e: now->cfa = (int64_t)leb(&program, 0); break;
        case 0x12: now->cfa_register = (int64_t)leb(&program, 0); now->cfa = (int64_t)leb(&program, 1) * common->data_step; break;
        case 0x13: now->cfa = (int64_t)leb(&program, 1) * common->data_step; break;
        case 0x0f: /* the CFA by an expression */
            length = leb(&program, 0);
            expression = program, skip(&program, length), expression.end = program.at;
            now->cfa_register = from_rbp(expression, 1, &now->cfa) ? -1 : -2;
            break;
        case 0x10: case 0x16: /* a register by an expression */
            number = leb(&program, 0), length = leb(&program, 0);
            expression = program, skip(&program, length), expression.end = program.at;
            if (number == RBP && byte == 0x10 && from_rbp(expression, 0, &distance)) now->saved = AT_RBP, now->rbp = distance;
            else if (number == RBP || number == RETURN_ADDRESS) now->strange = 1;
            break;
        case 0x14: leb(&program, 0); leb(&program, 0); break;
        case 0x15: leb(&program, 0); leb(&program, 1); break;
        case 0x2e: leb(&program, 0); break; /* GNU_args_size */
        default: program.bad = 1;
        }
    }
    if (program.bad) now->strange = 1;
}

static int read_common(struct reader entry, struct common *common) {
    *common = (struct common){0};
    skip(&entry, 8);
    uint8_t version = (uint8_t)fixed(&entry, 1);
    const uint8_t *augmentation = entry.at;
    while (fixed(&entry, 1) && !entry.bad) {}
    common->code_step = leb(&entry, 0);
    common->data_step = (int64_t)leb(&entry, 1);
    if (version == 1) skip(&entry, 1);
    else leb(&entry, 0);
    if (entry.bad) return 0;
    if (*augmentation == 'z') {
        common->augmented = 1;
        uint64_t length = leb(&entry, 0);
        struct reader data = entry;
        skip(&entry, length);
        for (augmentation++; *augmentation && !data.bad; augmentation++) switch (*augmentation) {
            case 'R': common->encoding = (uint8_t)fixed(&data, 1); break;
            case 'P': {
                uint8_t encoding = (uint8_t)fixed(&data, 1);
                pointer(&data, encoding & 0x0f);
                break;
            }
            case 'L': skip(&data, 1); break;
            case 'S': common->signal = 1; break;
            default: break;
            }
        if (data.bad) return 0;
    } else if (*augmentation) return 0;
    common->program = entry;
    return !entry.bad;
}

/* An entry of .eh_frame, from its length on; 0: it is not within the module. */
static int entry_at(uint64_t at, uint64_t start, uint64_t end, struct reader *entry) {
    if (at < start || at + 8 > end) return 0;
    uint32_t length;
    memcpy(&length, (const void *)at, 4);
    if (length == 0 || length == 0xffffffffu || length > end - at - 4) return 0;
    *entry = (struct reader){(const uint8_t *)at, (const uint8_t *)at + 4 + length, 0};
    return 1;
}

/* Find what .eh_frame says about the code at `pc`; `exact`: it is the next instruction, not a return address. */
static struct rule learn(uint64_t pc, int exact) {
    struct rule rule = {.pc = pc | (uint64_t)exact << 63};
    uint64_t start, end, place = exact ? pc : pc - 1;
    const uint8_t *header = modules_find(place, &start, &end);
    if (header == NULL || (uint64_t)header < start || (uint64_t)header + 12 > end || header[0] != 1 || header[3] != 0x3b) return rule;
    struct reader reader = {header + 4, (const uint8_t *)end, 0};
    if (header[1] == 0xff) return rule;
    pointer(&reader, header[1]);
    uint64_t count = pointer(&reader, header[2]);
    if (reader.bad || count == 0 || count > (uint64_t)(reader.end - reader.at) / 8) return rule;
    const int32_t(*table)[2] = (const int32_t(*)[2])(const void *)reader.at;
    uint64_t low = 0, high = count;
    while (high - low > 1) {
        uint64_t middle = (low + high) / 2;
        if ((uint64_t)header + (uint64_t)(int64_t)table[middle][0] <= place) low = middle;
        else high = middle;
    }
    struct reader entry, parent;
    struct common common;
    if (!entry_at((uint64_t)header + (uint64_t)(int64_t)table[low][1], start, end, &entry)) return rule;
    int32_t back;
    memcpy(&back, entry.at + 4, 4);
    if (!entry_at((uint64_t)(entry.at + 4) - (uint64_t)(int64_t)back, start, end, &parent) || !read_common(parent, &common)) return rule;
    skip(&entry, 8);
    uint64_t first = pointer(&entry, common.encoding), length = pointer(&entry, common.encoding & 15);
    if (entry.bad || place < first || place >= first + length) return rule;
    if (common.augmented) skip(&entry, leb(&entry, 0));
    if (common.signal) {
        rule.base = SIGNAL_FRAME;
        return rule;
    }
    struct columns columns = {.cfa_register = -2}, initial;
    run(common.program, &common, 0, ~0ull, &columns, &columns);
    initial = columns;
    run(entry, &common, first, place, &columns, &initial);
    if (columns.outermost) rule.base = OUTERMOST;
    else if (columns.strange || columns.cfa != (int32_t)columns.cfa || columns.rbp > 0x7fffff || columns.rbp < -0x800000) return rule;
    else rule.base = columns.cfa_register == RSP ? FROM_RSP : columns.cfa_register == RBP ? FROM_RBP : columns.cfa_register == -1 ? STORED_FROM_RBP : FROM_NOTHING;
    rule.cfa = (int32_t)columns.cfa, rule.saved = columns.saved, rule.rbp = (int32_t)columns.rbp;
    return rule;
}

/* Find the bounds of the mapping that has the stack. */
static void find_stack(struct thread *thread, uint64_t pointer) {
    char text[4096];
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    thread->stack_low = thread->stack_high = 0;
    if (file < 0) return;
    uint64_t numbers[2] = {0, 0};
    int field = 0; /* 0, 1: a number; 2: the rest of the line */
    ssize_t got;
    while (thread->stack_high == 0 && (got = syscall(SYS_read, file, text, sizeof text)) > 0)
        for (ssize_t index = 0; index < got && thread->stack_high == 0; index++) {
            char one = text[index];
            if (one == '\n') field = 0, numbers[0] = numbers[1] = 0;
            else if (field == 2) continue;
            else if (one == '-') field = 1;
            else if (one == ' ') {
                field = 2;
                if (pointer >= numbers[0] && pointer < numbers[1]) thread->stack_low = numbers[0], thread->stack_high = numbers[1];
            } else numbers[field] = numbers[field] << 4 | (uint64_t)(one <= '9' ? one - '0' : one - 'a' + 10);
        }
    syscall(SYS_close, file);
    if (thread->stack_low > 65536) thread->stack_low -= 65536; /* it grows */
}

/* A frame of a walk, and what led from it to its caller. */
struct walked {
    uint64_t pc, sp, rbp;
    const uint64_t *rbp_at; /* where the caller's rbp was read; the caller's own `rbp`: it is the same */
    const uint64_t *sp_at;  /* where the caller's stack pointer was read; NULL: it is known from this frame */
    uint64_t hash;          /* of its pc and those of all outer frames */
};

struct walk {
    uint64_t high;                       /* of the last walk's stack */
    const uint64_t *end_at;              /* where its outermost return address was read, which is 0; NULL: there is none */
    struct walked frames[LARGEST_STACK]; /* outermost first */
    struct walked fresh[LARGEST_STACK];  /* of the walk under way, innermost first */
};

/* Whether the frames outside of `index` are as they were: the same words are where they were read. Reads what a walk from there would, in its order. */
static inline int is_unchanged(const struct walk *walk, uint32_t index) {
    for (uint32_t one = index; one > 0; one--) {
        const struct walked *inner = &walk->frames[one], *outer = inner - 1;
        if (UNLIKELY(inner->sp_at != NULL) && *inner->sp_at != outer->sp) return 0;
        if (*(const uint64_t *)(outer->sp - 8) != outer->pc || *inner->rbp_at != outer->rbp) return 0;
    }
    return walk->end_at == NULL || *walk->end_at == 0;
}

static uint32_t walk_on(struct thread *thread, void **frame, uint64_t *key) {
    uint64_t pc = (uint64_t)frame[1], sp = (uint64_t)(frame + 2), rbp = (uint64_t)frame[0], exact = 0;
    uint32_t count = 0, outer = 0, tries = 2; /* `outer`: frames of the last walk that are still there */
    int can_keep = 1, cut = 1;
    if (UNLIKELY(thread->rules == NULL)) {
        uint8_t *made = writer_pages(sizeof(struct rule) * RULES + sizeof(struct walk));
        if (made == NULL) {
            thread->pcs[0] = pc;
            *key = mixed(1, pc) | 1;
            return thread->cut = 1;
        }
        thread->walk = (struct walk *)(void *)(made + sizeof(struct rule) * RULES);
        thread->rules = (struct rule *)(void *)made;
    }
    struct walk *walk = thread->walk;
    if (UNLIKELY(sp < thread->stack_low || sp >= thread->stack_high)) find_stack(thread, sp);
    uint64_t high = thread->stack_high;
    const uint64_t *end_at = NULL;
    uint32_t known = walk->high == high ? thread->walked_count : 0; /* frames of the last walk that may be met */
    while (pc && count < LARGEST_STACK) {
        while (known && walk->frames[known - 1].sp < sp) known--;
        const struct walked *same = known ? &walk->frames[known - 1] : NULL;
        if (same && same->sp == sp && same->pc == pc && same->rbp == rbp && !exact && count + known <= LARGEST_STACK) {
            if (is_unchanged(walk, known - 1)) {
                outer = known, cut = thread->cut, end_at = walk->end_at;
                break;
            }
            known = --tries ? known - 1 : 0;
        }
        struct walked *here = &walk->fresh[count++];
        here->pc = pc, here->sp = sp, here->rbp = rbp, here->rbp_at = here->sp_at = NULL;
        uint64_t wanted = pc | exact << 63;
        struct rule *rule = &thread->rules[(pc * 0x9e3779b97f4a7c15ull) >> 51];
        if (UNLIKELY(rule->pc != wanted)) *rule = learn(pc, (int)exact);
        uint64_t cfa, at = 0;
        exact = 0;
        switch (rule->base) {
        case FROM_RSP: cfa = sp + (uint64_t)(int64_t)rule->cfa; break;
        case FROM_RBP: cfa = rbp + (uint64_t)(int64_t)rule->cfa; break;
        case STORED_FROM_RBP:
            at = rbp + (uint64_t)(int64_t)rule->cfa;
            if (at < sp || at > high - 8 || at & 7) goto torn;
            here->sp_at = (const uint64_t *)at;
            cfa = *(uint64_t *)at;
            break;
        case SIGNAL_FRAME:
            /* struct ucontext lies at the stack pointer; its registers from byte 40 on: r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip. */
            if (sp > high - 176) goto torn;
            pc = *(uint64_t *)(sp + 168), rbp = *(uint64_t *)(sp + 120);
            cfa = *(uint64_t *)(sp + 160);
            exact = 1, can_keep = 0, known = 0;
            if (cfa < sp || cfa >= high) {
                /* The handler has a stack of its own. */
                find_stack(thread, cfa);
                high = thread->stack_high;
            }
            sp = cfa;
            continue;
        case OUTERMOST: cut = 0; goto done;
        default: goto done;
        }
        if (cfa <= sp || cfa > high || cfa & 7) goto torn;
        if (rule->saved == AT_CFA) at = cfa + (uint64_t)(int64_t)rule->rbp;
        else if (rule->saved == AT_RBP) at = rbp + (uint64_t)(int64_t)rule->rbp;
        if (rule->saved != SAME) {
            if (at < sp || at > high - 8 || at & 7) goto torn;
            rbp = *(uint64_t *)at;
            here->rbp_at = (const uint64_t *)at;
        }
        end_at = (const uint64_t *)(cfa - 8);
        pc = *end_at;
        sp = cfa;
    }
    if (pc == 0) cut = 0;
    else if (outer == 0) can_keep = 0, end_at = NULL; /* too deep: its outermost frame is none of other stacks' */
    goto ended;
torn:
    can_keep = 0;
done:
    end_at = NULL;
ended:;
    uint32_t all = outer + count;
    uint64_t hash = outer ? walk->frames[outer - 1].hash : 1;
    for (uint32_t index = outer; index < all; index++) {
        struct walked *here = &walk->frames[index];
        *here = walk->fresh[all - 1 - index];
        if (here->rbp_at == NULL) here->rbp_at = &walk->frames[index ? index - 1 : 0].rbp;
        here->hash = hash = mixed(hash, here->pc);
    }
    walk->high = high, walk->end_at = end_at;
    thread->walked_count = can_keep ? all : 0;
    thread->cut = cut;
    *key = hash | 1;
    return all;
}

uint32_t writer_walk(struct thread *thread, void **frame, uint64_t *key) {
#ifdef CHECK_WALKS /* a test: each stack is walked whole, too */
    uint64_t other, same[LARGEST_STACK];
    uint32_t frames = walk_on(thread, frame, &other), cut = (uint32_t)thread->cut;
    writer_walked(thread, frames);
    memcpy(same, thread->pcs, sizeof same);
    thread->walked_count = 0;
    uint32_t count = walk_on(thread, frame, key);
    writer_walked(thread, count);
    if (count != frames || other != *key || cut != (uint32_t)thread->cut || memcmp(same, thread->pcs, count * 8) != 0) __builtin_trap();
    return count;
#else
    return walk_on(thread, frame, key);
#endif
}

void writer_walked(struct thread *thread, uint32_t count) {
    for (uint32_t index = 0; index < count && thread->walk; index++) thread->pcs[index] = thread->walk->frames[count - 1 - index].pc;
}

#else

uint32_t writer_walk(struct thread *thread, void **frame, uint64_t *key) {
    thread->pcs[0] = (uint64_t)frame[1];
    thread->cut = 1;
    *key = mixed(1, thread->pcs[0]) | 1;
    return 1;
}

void writer_walked(struct thread *thread, uint32_t count) { (void)thread, (void)count; }

#endif
