/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .eh_frame_hdr is a sorted table: first instruction of a function, place of its
 * description (FDE). An FDE refers to a common part (CIE) and holds a program of
 * small instructions; running both up to the wanted address gives the row
 * (DWARF 5, 6.4; Linux Standard Base, "Exception Frames").
 *
 * The bytes belong to a module that runs, so they are not hostile, but they may be
 * odd: every read is checked against the end of what it belongs to, and what is
 * not understood gives TTM_ROW_UNKNOWN.
 */
#include "stack/cfi.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "stack/probe.h"

/* Numbers of registers in the descriptions. */
enum { REG_RBP = 6, REG_RSP = 7, REG_RETURN = 16 };

enum pointer_encoding {
    ENC_ABSOLUTE = 0x00,
    ENC_UDATA2 = 0x02,
    ENC_UDATA4 = 0x03,
    ENC_UDATA8 = 0x04,
    ENC_SDATA2 = 0x0a,
    ENC_SDATA4 = 0x0b,
    ENC_SDATA8 = 0x0c,
    ENC_FORMAT = 0x0f,
    ENC_PCREL = 0x10,
    ENC_DATAREL = 0x30,
    ENC_APPLICATION = 0x70,
};

/* DW_CFA_*; three more have their operand in the same byte. */
enum opcode {
    OP_NOP = 0x00,
    OP_SET_LOC = 0x01,
    OP_ADVANCE_LOC1 = 0x02,
    OP_ADVANCE_LOC2 = 0x03,
    OP_ADVANCE_LOC4 = 0x04,
    OP_OFFSET_EXTENDED = 0x05,
    OP_RESTORE_EXTENDED = 0x06,
    OP_UNDEFINED = 0x07,
    OP_SAME_VALUE = 0x08,
    OP_REGISTER = 0x09,
    OP_REMEMBER_STATE = 0x0a,
    OP_RESTORE_STATE = 0x0b,
    OP_DEF_CFA = 0x0c,
    OP_DEF_CFA_REGISTER = 0x0d,
    OP_DEF_CFA_OFFSET = 0x0e,
    OP_DEF_CFA_EXPRESSION = 0x0f,
    OP_EXPRESSION = 0x10,
    OP_OFFSET_EXTENDED_SF = 0x11,
    OP_DEF_CFA_SF = 0x12,
    OP_DEF_CFA_OFFSET_SF = 0x13,
    OP_VAL_OFFSET = 0x14,
    OP_VAL_OFFSET_SF = 0x15,
    OP_VAL_EXPRESSION = 0x16,
    OP_GNU_ARGS_SIZE = 0x2e,
    OP_GNU_NEGATIVE_OFFSET = 0x2f,
};

enum rule_kind { RULE_SAME, RULE_OFFSET, RULE_UNDEFINED, RULE_FROM_RBP, RULE_OTHER };

struct rule {
    enum rule_kind kind;
    int64_t offset;
};

struct state {
    enum { CFA_NONE, CFA_REGISTER, CFA_DEREF_RBP, CFA_OTHER } cfa_kind;
    uint64_t cfa_register;
    int64_t cfa_offset;
    struct rule rbp;
    struct rule ret;
    struct rule other; /* of all registers that a walk does not need */
};

#define REMEMBERED_MAX 8

struct program {
    struct state now;
    struct state initial;
    struct state remembered[REMEMBERED_MAX];
    unsigned remembered_count;
    uint64_t location;
    uint64_t code_align;
    int64_t data_align;
    uint8_t pointer_encoding;
    bool is_signal;
};

/* Bytes from 'at' to 'end'. A read beyond the end gives 0 and is remembered. */
struct cursor {
    uintptr_t at;
    uintptr_t end;
    bool failed;
};

TTM_READS_FOREIGN static uint64_t take(struct cursor *c, size_t size)
{
    uint64_t value = 0;

    if (c->end - c->at < size || c->end < c->at) {
        c->failed = true;
        c->at = c->end;
        return 0;
    }
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)ttm_load_u8(c->at + i) << (8 * i);
    c->at += size;
    return value;
}

static uint64_t take_uleb(struct cursor *c)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint64_t byte = take(c, 1);
        value |= (byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    c->failed = true;
    return 0;
}

static int64_t take_sleb(struct cursor *c)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64;) {
        const uint64_t byte = take(c, 1);
        value |= (byte & 0x7f) << shift;
        shift += 7;
        if (!(byte & 0x80)) {
            if ((byte & 0x40) && shift < 64)
                value |= UINT64_MAX << shift;
            return (int64_t)value;
        }
    }
    c->failed = true;
    return 0;
}

static void skip(struct cursor *c, uint64_t size)
{
    if (size > c->end - c->at) {
        c->failed = true;
        size = c->end - c->at;
    }
    c->at += size;
}

/* A pointer as 'encoding' says. Indirect ones and those of other bases are not followed. */
static uint64_t take_pointer(struct cursor *c, uint8_t encoding)
{
    const uint64_t base = (encoding & ENC_APPLICATION) == ENC_PCREL ? c->at : 0;

    switch (encoding & ENC_FORMAT) {
    case ENC_UDATA2:
        return base + take(c, 2);
    case ENC_UDATA4:
        return base + take(c, 4);
    case ENC_ABSOLUTE:
    case ENC_UDATA8:
    case ENC_SDATA8:
        return base + take(c, 8);
    case ENC_SDATA2:
        return base + (uint64_t)(int64_t)(int16_t)take(c, 2);
    case ENC_SDATA4:
        return base + (uint64_t)(int64_t)(int32_t)take(c, 4);
    default:
        c->failed = true;
        return 0;
    }
}

/* An entry of .eh_frame at 'at': its bytes after the length. */
static struct cursor entry_at(uintptr_t at, uintptr_t end)
{
    struct cursor c = {.at = at, .end = end};
    const uint64_t length = take(&c, 4);

    if (length == 0 || length >= 0xfffffff0u || length > c.end - c.at)
        c.failed = true;
    else
        c.end = c.at + length;
    return c;
}

/* The FDE that may hold 'address', 0 for none. */
static uintptr_t find_fde(uint64_t address, uintptr_t header, uintptr_t end)
{
    struct cursor c = {.at = header, .end = end};
    const uint64_t version = take(&c, 1);
    const uint8_t frame_encoding = (uint8_t)take(&c, 1);
    const uint8_t count_encoding = (uint8_t)take(&c, 1);
    const uint8_t table_encoding = (uint8_t)take(&c, 1);

    /* What every linker writes; a module with another table goes without frames. */
    if (version != 1 || count_encoding != ENC_UDATA4 ||
        table_encoding != (ENC_DATAREL | ENC_SDATA4))
        return 0;
    (void)take_pointer(&c, frame_encoding);
    const uint64_t count = take(&c, 4);
    if (c.failed || count == 0 || count > (c.end - c.at) / 8)
        return 0;

    const uintptr_t table = c.at;
    uint64_t low = 0, high = count;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        const int32_t first = (int32_t)ttm_load_u32(table + middle * 8);

        if (header + (uint64_t)(int64_t)first <= address)
            low = middle;
        else
            high = middle;
    }
    return header + (uint64_t)(int64_t)(int32_t)ttm_load_u32(table + low * 8 + 4);
}

/* Reads the CIE up to its instructions, at which 'c' is left. */
static void read_cie(struct cursor *c, struct program *p, bool *ret_has_length)
{
    char augmentation[8] = "";
    size_t n = 0;

    (void)take(c, 4); /* its id, 0 */
    const uint64_t version = take(c, 1);
    for (uint64_t byte = take(c, 1); byte != 0 && !c->failed; byte = take(c, 1))
        if (n < sizeof(augmentation) - 1)
            augmentation[n++] = (char)byte;
        else
            c->failed = true;
    p->code_align = take_uleb(c);
    p->data_align = take_sleb(c);
    if ((version == 1 ? take(c, 1) : take_uleb(c)) != REG_RETURN)
        c->failed = true;

    *ret_has_length = augmentation[0] == 'z';
    if (augmentation[0] == '\0')
        return;
    if (augmentation[0] != 'z') {
        c->failed = true;
        return;
    }
    const uint64_t length = take_uleb(c);
    const uintptr_t instructions = c->at + length;
    for (size_t i = 1; i < n; i++) {
        const char a = augmentation[i];

        if (a == 'R')
            p->pointer_encoding = (uint8_t)take(c, 1);
        else if (a == 'L')
            (void)take(c, 1);
        else if (a == 'P')
            (void)take_pointer(c, (uint8_t)take(c, 1));
        else if (a == 'S')
            p->is_signal = true;
        else if (a != 'B')
            break; /* the length says where the instructions are */
    }
    if (instructions < c->at || instructions > c->end)
        c->failed = true;
    else
        c->at = instructions;
}

static struct rule *rule_of(struct state *state, uint64_t reg)
{
    if (reg == REG_RBP)
        return &state->rbp;
    return reg == REG_RETURN ? &state->ret : &state->other;
}

/* "breg6 N" leaves the address rbp + N; with a deref behind it, what lies there. */
static bool take_from_rbp(struct cursor *c, bool has_deref, int64_t *ret)
{
    const uint64_t length = take_uleb(c);
    struct cursor e = {.at = c->at, .end = c->at + length};

    skip(c, length);
    if (c->failed || take(&e, 1) != 0x76) /* DW_OP_breg6 */
        return false;
    *ret = take_sleb(&e);
    if (has_deref && take(&e, 1) != 0x06) /* DW_OP_deref */
        return false;
    return !e.failed && e.at == e.end;
}

static void set_offset(struct program *p, uint64_t reg, int64_t factored)
{
    *rule_of(&p->now, reg) = (struct rule){RULE_OFFSET, factored * p->data_align};
}

static void set_kind(struct program *p, uint64_t reg, enum rule_kind kind)
{
    *rule_of(&p->now, reg) = (struct rule){kind, 0};
}

static void set_cfa(struct program *p, uint64_t reg, int64_t offset)
{
    p->now.cfa_kind = CFA_REGISTER;
    p->now.cfa_register = reg;
    p->now.cfa_offset = offset;
}

static void restore(struct program *p, uint64_t reg)
{
    *rule_of(&p->now, reg) = *rule_of(&p->initial, reg);
}

static void run_cfa_expression(struct cursor *c, struct program *p)
{
    int64_t offset = 0;

    p->now.cfa_kind = take_from_rbp(c, true, &offset) ? CFA_DEREF_RBP : CFA_OTHER;
    p->now.cfa_offset = offset;
}

static void run_expression(struct cursor *c, struct program *p, uint64_t reg)
{
    struct rule rule = {RULE_OTHER, 0};

    if (take_from_rbp(c, false, &rule.offset))
        rule.kind = RULE_FROM_RBP;
    *rule_of(&p->now, reg) = rule;
}

static void run_remember(struct cursor *c, struct program *p)
{
    if (p->remembered_count == REMEMBERED_MAX)
        c->failed = true;
    else
        p->remembered[p->remembered_count++] = p->now;
}

static void run_restore_state(struct cursor *c, struct program *p)
{
    if (p->remembered_count == 0)
        c->failed = true;
    else
        p->now = p->remembered[--p->remembered_count];
}

/* Instructions about the frame's address. Returns false when it is none of them. */
static bool run_on_cfa(struct cursor *c, struct program *p, uint8_t op)
{
    uint64_t reg;

    switch (op) {
    case OP_DEF_CFA:
        reg = take_uleb(c);
        set_cfa(p, reg, (int64_t)take_uleb(c));
        return true;
    case OP_DEF_CFA_SF:
        reg = take_uleb(c);
        set_cfa(p, reg, take_sleb(c) * p->data_align);
        return true;
    case OP_DEF_CFA_REGISTER:
        set_cfa(p, take_uleb(c), p->now.cfa_offset);
        return true;
    case OP_DEF_CFA_OFFSET:
        p->now.cfa_offset = (int64_t)take_uleb(c);
        return true;
    case OP_DEF_CFA_OFFSET_SF:
        p->now.cfa_offset = take_sleb(c) * p->data_align;
        return true;
    case OP_DEF_CFA_EXPRESSION:
        run_cfa_expression(c, p);
        return true;
    default:
        return false;
    }
}

/* Instructions about one register; 'op' is one of them, or the program is not understood. */
static void run_on_register(struct cursor *c, struct program *p, uint8_t op)
{
    const uint64_t reg = take_uleb(c);

    switch (op) {
    case OP_OFFSET_EXTENDED:
        set_offset(p, reg, (int64_t)take_uleb(c));
        break;
    case OP_OFFSET_EXTENDED_SF:
        set_offset(p, reg, take_sleb(c));
        break;
    case OP_GNU_NEGATIVE_OFFSET:
        set_offset(p, reg, -(int64_t)take_uleb(c));
        break;
    case OP_RESTORE_EXTENDED:
        restore(p, reg);
        break;
    case OP_UNDEFINED:
        set_kind(p, reg, RULE_UNDEFINED);
        break;
    case OP_SAME_VALUE:
        set_kind(p, reg, RULE_SAME);
        break;
    case OP_EXPRESSION:
        run_expression(c, p, reg);
        break;
    case OP_REGISTER:
    case OP_VAL_OFFSET:
    case OP_VAL_OFFSET_SF:
        set_kind(p, reg, RULE_OTHER);
        (void)take_uleb(c);
        break;
    case OP_VAL_EXPRESSION:
        set_kind(p, reg, RULE_OTHER);
        skip(c, take_uleb(c));
        break;
    default:
        c->failed = true;
        break;
    }
}

/* An instruction whose top two bits are 0. */
static void run_extended(struct cursor *c, struct program *p, uint8_t op)
{
    switch (op) {
    case OP_NOP:
        break;
    case OP_SET_LOC:
        p->location = take_pointer(c, p->pointer_encoding);
        break;
    case OP_ADVANCE_LOC1:
    case OP_ADVANCE_LOC2:
    case OP_ADVANCE_LOC4:
        p->location += take(c, (size_t)1 << (op - OP_ADVANCE_LOC1)) * p->code_align;
        break;
    case OP_REMEMBER_STATE:
        run_remember(c, p);
        break;
    case OP_RESTORE_STATE:
        run_restore_state(c, p);
        break;
    case OP_GNU_ARGS_SIZE:
        (void)take_uleb(c);
        break;
    default:
        if (!run_on_cfa(c, p, op))
            run_on_register(c, p, op);
        break;
    }
}

/* Runs until the end, or until the row of 'address' is complete. */
static void run(struct cursor *c, struct program *p, uint64_t address)
{
    while (c->at < c->end && !c->failed) {
        const uint8_t byte = (uint8_t)take(c, 1);
        const uint8_t low = byte & 0x3f;

        switch (byte >> 6) {
        case 1: /* advance_loc */
            p->location += low * p->code_align;
            break;
        case 2: /* offset */
            set_offset(p, low, (int64_t)take_uleb(c));
            break;
        case 3: /* restore */
            restore(p, low);
            break;
        default:
            run_extended(c, p, low);
            break;
        }
        if (p->location > address)
            return;
    }
}

static bool fits(int64_t value, int64_t limit)
{
    return value >= -limit && value < limit;
}

/* The state as a row, where a row can say it. */
static void to_row(const struct program *p, struct ttm_row *row)
{
    const struct state *s = &p->now;
    enum ttm_row_kind kind = TTM_ROW_UNKNOWN;

    if (p->is_signal) {
        row->kind = TTM_ROW_SIGNAL;
        return;
    }
    if (s->ret.kind == RULE_UNDEFINED) {
        row->kind = TTM_ROW_OUTERMOST;
        return;
    }
    if (s->ret.kind != RULE_OFFSET || s->ret.offset != -8 ||
        !fits(s->cfa_offset, INT64_C(1) << 31) || !fits(s->rbp.offset, 1 << 15))
        return;

    if (s->cfa_kind == CFA_REGISTER && s->cfa_register == REG_RSP)
        kind = TTM_ROW_RSP;
    else if (s->cfa_kind == CFA_REGISTER && s->cfa_register == REG_RBP)
        kind = TTM_ROW_RBP;
    else if (s->cfa_kind == CFA_DEREF_RBP && s->rbp.kind == RULE_FROM_RBP && s->rbp.offset == 0)
        kind = TTM_ROW_REALIGNED;
    if (kind == TTM_ROW_RSP || kind == TTM_ROW_RBP) {
        if (s->rbp.kind == RULE_OFFSET)
            row->rbp_offset = (int16_t)s->rbp.offset;
        else if (s->rbp.kind != RULE_SAME && s->rbp.kind != RULE_UNDEFINED)
            kind = TTM_ROW_UNKNOWN;
    }
    row->cfa_offset = (int32_t)s->cfa_offset;
    row->kind = (uint8_t)kind;
}

void ttm_cfi_read_row(uint64_t address, uintptr_t header, uintptr_t start, uintptr_t end,
                      struct ttm_row *ret)
{
    *ret = (struct ttm_row){.address = address, .is_known = 1};
    if (header < start || header >= end)
        return;
    const uintptr_t at = find_fde(address, header, end);
    if (at == 0 || at < start || at >= end)
        return;

    struct cursor fde = entry_at(at, end);
    const uintptr_t back = fde.at;
    const uint64_t distance = take(&fde, 4);
    if (fde.failed || distance == 0 || distance > back - start)
        return;

    struct program p = {.pointer_encoding = ENC_ABSOLUTE};
    struct cursor cie = entry_at(back - distance, end);
    bool has_length = false;
    if (!cie.failed)
        read_cie(&cie, &p, &has_length);
    const uint64_t first = take_pointer(&fde, p.pointer_encoding);
    const uint64_t length = take_pointer(&fde, p.pointer_encoding & ENC_FORMAT);
    if (has_length)
        skip(&fde, take_uleb(&fde));
    if (cie.failed || fde.failed || address < first || address - first >= length)
        return;

    p.location = first;
    run(&cie, &p, UINT64_MAX);
    p.initial = p.now;
    p.location = first;
    run(&fde, &p, address);
    if (!cie.failed && !fde.failed)
        to_row(&p, ret);
}
