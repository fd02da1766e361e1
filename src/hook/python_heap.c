/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object is known by its address. A table has a row for each 4 KiB of memory with
 * objects in it, of one cache line: a bit for each 16 bytes, and the number of objects in the
 * rows before. So an object has a number (its row's, plus the bits before its own), and to ask
 * whether an address is one of ours takes one line of a table of a few MiB. A hash table of
 * objects would take a hundred, and most of the time of a pass would be waiting for memory.
 *
 *   1  each object of the list gets a bit and a place in 'nodes'
 *   2  each node is traversed; what it refers to is written down by address. Tensors, and the
 *      containers that are not in the list, are found here and become nodes too
 *   3  bits are counted, so addresses become numbers, and references are sorted by what they
 *      refer to: a list of referrers for each object, the oldest first
 *   4  a reference is taken to each node that is not in the list
 *
 * All of it happens in one call, so nothing changes meanwhile. A tuple that C code is about to
 * fill must not be in our hands while other threads run (SystemError would be raised there), so
 * the list is made without tuples and frozensets. They are found inside of what refers to them.
 *
 * Memory: 24 bytes for each object and 16 for each reference between objects while it is built,
 * 20 and 4 afterwards, and 128 bytes at most for each 4 KiB of memory that has objects. The limits
 * below bound it to 600 MiB; 1.5 million objects with 2 million references take 60 MiB.
 */
#include "hook/python_heap.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define NODES_MAX 4000000u
#define EDGES_MAX 24000000u
#define ROWS_MAX (1u << 20)   /* of a table: 4 GiB of objects beside each other */
#define KINDS_MAX (1u << 18)  /* of types */
#define LOOK_EVERY 4096u      /* nodes between two looks at the clock */
#define ARGUMENTS_FAST 0x0080 /* METH_FASTCALL */
#define TRAVERSE 71           /* Py_tp_traverse */
#define GRAPH "ttmem.graph"

typedef int (*visit_fn)(void *thing, void *arg);
typedef int (*traverse_fn)(void *thing, visit_fn visit, void *arg);

/* Of the interpreter, all in the stable ABI; all or none. */
static struct {
    void *(*new_list)(ssize_t size);
    ssize_t (*list_size)(void *list);
    void *(*list_item)(void *list, ssize_t index); /* borrowed */
    int (*list_append)(void *list, void *item);
    int (*list_set)(void *list, ssize_t index, void *item); /* takes the item */
    void *(*tuple_item)(void *tuple, ssize_t index);        /* borrowed */
    void *(*bool_of)(long value);
    unsigned long (*number)(void *object);
    void *(*call)(void *function, ...);
    void *(*type_of)(void *object);
    void *(*slot)(void *type, int slot);
    void *(*new_capsule)(void *pointer, const char *name, void (*done)(void *));
    void *(*capsule_pointer)(void *capsule, const char *name);
    void *(*has_error)(void);
    void (*set_error)(void *kind, const char *text);
    void (*ref)(void *object);
    void (*unref)(void *object);
    void *none;
    void **type_error;
} py;

/* ---- addresses ---- */

struct row {
    uint64_t page; /* address / 4096; 0: free */
    uint64_t bits[4];
    uint32_t first; /* number of its first object, from step 3 on */
    uint32_t unused[5];
};

_Static_assert(sizeof(struct row) == 64, "one cache line");

struct table {
    struct row *rows;
    uint32_t size; /* a power of two, 0: none yet */
    uint32_t used;
};

static void *take_pages(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    return memory;
}

static void give_pages(void *memory, size_t bytes)
{
    if (memory)
        (void)munmap(memory, bytes);
}

/* The row of a page, or the free one where it would be. The table has one of either. */
static struct row *row_of(const struct table *table, uint64_t page)
{
    uint32_t i = (uint32_t)((page * 0x9e3779b97f4a7c15u) >> 32) & (table->size - 1);

    while (table->rows[i].page != page && table->rows[i].page != 0)
        i = (i + 1) & (table->size - 1);
    return &table->rows[i];
}

static bool grow(struct table *table)
{
    struct table grown = {.size = table->size ? table->size * 2 : 4096, .used = table->used};

    if (grown.size > 2 * ROWS_MAX)
        return false;
    grown.rows = take_pages(grown.size * sizeof(grown.rows[0]));
    if (!grown.rows)
        return false;
    for (uint32_t i = 0; i < table->size; i++) {
        if (table->rows[i].page != 0)
            *row_of(&grown, table->rows[i].page) = table->rows[i];
    }
    give_pages(table->rows, table->size * sizeof(table->rows[0]));
    *table = grown;
    return true;
}

static void table_done(struct table *table)
{
    give_pages(table->rows, table->size * sizeof(table->rows[0]));
    *table = (struct table){0};
}

static unsigned bit_of(const void *thing)
{
    return (unsigned)((uintptr_t)thing >> 4 & 255);
}

static bool has(const struct table *table, const void *thing)
{
    if (table->size == 0)
        return false;
    const struct row *row = row_of(table, (uintptr_t)thing >> 12);
    const unsigned bit = bit_of(thing);

    return row->page != 0 && (row->bits[bit / 64] >> bit % 64 & 1);
}

/* Returns false when memory is short. */
static bool add(struct table *table, const void *thing)
{
    if (table->used >= table->size / 2 && !grow(table))
        return false;
    struct row *row = row_of(table, (uintptr_t)thing >> 12);
    const unsigned bit = bit_of(thing);

    if (row->page == 0) {
        row->page = (uintptr_t)thing >> 12;
        table->used++;
    }
    row->bits[bit / 64] |= UINT64_C(1) << bit % 64;
    return true;
}

/* Step 3. Returns how many objects there are. */
static uint32_t count_bits(struct table *table)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < table->size; i++) {
        struct row *row = &table->rows[i];
        row->first = count;
        for (unsigned j = 0; j < 4; j++)
            count += (uint32_t)__builtin_popcountll(row->bits[j]);
    }
    return count;
}

/* Of an object that the table has, after count_bits(). */
static uint32_t number_of(const struct table *table, const void *thing)
{
    const struct row *row = row_of(table, (uintptr_t)thing >> 12);
    const unsigned bit = bit_of(thing);
    uint32_t number = row->first;

    for (unsigned j = 0; j < bit / 64; j++)
        number += (uint32_t)__builtin_popcountll(row->bits[j]);
    const uint64_t before = (UINT64_C(1) << bit % 64) - 1;
    return number + (uint32_t)__builtin_popcountll(row->bits[bit / 64] & before);
}

/* ---- types ---- */

struct kind {
    void *type; /* NULL: free */
    traverse_fn traverse;
    unsigned flags; /* enum ttm_heap_kind */
};

struct kinds {
    struct kind *list;
    uint32_t size; /* a power of two */
    uint32_t used;
};

/* The second word of an object; is_laid_out() has compared. */
static void *type_of(const void *thing)
{
    void *type;

    memcpy(&type, (const char *)thing + sizeof(void *), sizeof(type));
    return type;
}

/* That of a type, or the free one where it would be. */
static struct kind *kind_of(const struct kinds *kinds, const void *type)
{
    uint32_t i = (uint32_t)((uintptr_t)type * 0x9e3779b97f4a7c15u >> 32) & (kinds->size - 1);

    while (kinds->list[i].type != type && kinds->list[i].type)
        i = (i + 1) & (kinds->size - 1);
    return &kinds->list[i];
}

static bool kinds_init(struct kinds *kinds, uint32_t size)
{
    *kinds = (struct kinds){.size = size, .list = calloc(size, sizeof(kinds->list[0]))};
    return kinds->list != NULL;
}

static bool kinds_grow(struct kinds *kinds)
{
    struct kinds grown;

    if (kinds->size >= KINDS_MAX || !kinds_init(&grown, kinds->size * 2))
        return false;
    grown.used = kinds->used;
    for (uint32_t i = 0; i < kinds->size; i++) {
        if (kinds->list[i].type)
            *kind_of(&grown, kinds->list[i].type) = kinds->list[i];
    }
    free(kinds->list);
    *kinds = grown;
    return true;
}

/* One of the table for a type, new or known. NULL when there are too many. */
static struct kind *learn_kind(struct kinds *kinds, void *type)
{
    struct kind *kind = kind_of(kinds, type);

    if (kind->type)
        return kind;
    if (kinds->used >= kinds->size / 2) {
        if (!kinds_grow(kinds))
            return NULL;
        kind = kind_of(kinds, type);
    }
    kind->type = type;
    kinds->used++;
    return kind;
}

/* A list, as a class may have its own idea of what it is equal to. */
static bool read_kinds(void *list, struct kinds *ret)
{
    if (!kinds_init(ret, 1024))
        return false;
    for (ssize_t i = 0; i < py.list_size(list); i++) {
        void *type = py.tuple_item(py.list_item(list, i), 0);
        struct kind *kind = learn_kind(ret, type);
        if (!kind)
            return false;
        kind->flags |= (unsigned)py.number(py.tuple_item(py.list_item(list, i), 1));
        if (kind->flags & TTM_HEAP_PLAIN) {
            void *traverse = py.slot(type, TRAVERSE);
            memcpy(&kind->traverse, &traverse, sizeof(traverse)); /* ISO C has no such cast */
        }
    }
    return true;
}

/* ---- the pass ---- */

struct graph {
    struct table table;
    void **nodes;        /* those of 'pairs' first, so an object may be there twice */
    uint32_t *offsets;   /* of each object's referrers, by its number */
    uint32_t *referrers; /* places in 'nodes' */
    void *tensors;       /* a list of Python's */
    void *objects;       /* another; it refers to the nodes before 'found' */
    uint32_t found;
    uint32_t node_count;
    uint32_t object_count;
    uint32_t edge_count;
};

struct pass {
    struct graph *graph;
    struct kinds kinds;
    uint32_t *starts;  /* of each node's references in 'edges' */
    void **edges;      /* what is referred to */
    void *type;        /* of the node that is traversed */
    uint64_t limit_ns; /* of this thread's CPU time */
};

static uint64_t cpu_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool add_node(struct graph *graph, void *thing)
{
    if (graph->node_count >= NODES_MAX)
        return false;
    graph->nodes[graph->node_count++] = thing;
    return true;
}

/* An object becomes a node. */
static bool add_object(struct graph *graph, void *thing, unsigned flags)
{
    return add_node(graph, thing) && add(&graph->table, thing) &&
           (!(flags & TTM_HEAP_TENSOR) || py.list_append(graph->tensors, thing) == 0);
}

/* Called for each reference of the node that is traversed. Stops when a limit is reached. */
static int visit(void *thing, void *arg)
{
    struct pass *pass = arg;
    struct graph *graph = pass->graph;

    if (!thing || thing == pass->type) /* no way back leads through what a class is called by */
        return 0;
    if (!has(&graph->table, thing)) {
        const unsigned flags = kind_of(&pass->kinds, type_of(thing))->flags;
        if (!(flags & (TTM_HEAP_TENSOR | TTM_HEAP_INSIDE)))
            return 0;
        if (!add_object(graph, thing, flags))
            return -1;
    }
    if (graph->edge_count >= EDGES_MAX)
        return -1;
    pass->edges[graph->edge_count++] = thing;
    return 0;
}

/* The first nodes are what 'pairs' speaks of. */
static bool add_pairs(struct pass *pass, void *pairs)
{
    bool is_fine = true;

    for (ssize_t i = 0; is_fine && i < py.list_size(pairs); i++)
        is_fine = add_node(pass->graph, py.tuple_item(py.list_item(pairs, i), 0));
    return is_fine;
}

static bool add_all(struct pass *pass, void *objects)
{
    const ssize_t count = py.list_size(objects);
    bool is_fine = count <= NODES_MAX;

    for (ssize_t i = 0; is_fine && i < count; i++) {
        void *thing = py.list_item(objects, i);
        if (thing != py.none)
            is_fine = add_object(pass->graph, thing, kind_of(&pass->kinds, type_of(thing))->flags);
    }
    pass->graph->found = pass->graph->node_count;
    return is_fine;
}

static bool visit_list(struct pass *pass, void *list)
{
    bool is_fine = true;

    pass->type = NULL;
    for (ssize_t i = 0; is_fine && i < py.list_size(list); i++)
        is_fine = visit(py.list_item(list, i), pass) == 0;
    return is_fine;
}

static bool traverse(struct pass *pass, void *thing)
{
    pass->type = type_of(thing);
    const struct kind *kind = kind_of(&pass->kinds, pass->type);

    return !(kind->flags & TTM_HEAP_PLAIN) || !kind->traverse ||
           kind->traverse(thing, visit, pass) == 0;
}

/* Step 2; nodes are added while it goes. */
static bool traverse_all(struct pass *pass, void *pairs)
{
    struct graph *graph = pass->graph;
    const ssize_t pair_count = py.list_size(pairs);
    bool is_fine = true;

    for (uint32_t i = 0; is_fine && i < graph->node_count; i++) {
        pass->starts[i] = graph->edge_count;
        if (i < pair_count)
            is_fine = visit_list(pass, py.tuple_item(py.list_item(pairs, i), 1));
        else
            is_fine = traverse(pass, graph->nodes[i]);
        if (i % LOOK_EVERY == 0 && cpu_ns() > pass->limit_ns)
            is_fine = false;
    }
    return is_fine;
}

/* Step 3: counts the referrers of each, then puts them where they belong. */
static bool sort_edges(struct pass *pass)
{
    struct graph *graph = pass->graph;
    uint32_t end = graph->edge_count;

    graph->object_count = count_bits(&graph->table);
    graph->offsets = calloc(graph->object_count + 1u, sizeof(graph->offsets[0]));
    graph->referrers = malloc((graph->edge_count + 1u) * sizeof(graph->referrers[0]));
    uint32_t *numbers = calloc(graph->edge_count + 1u, sizeof(numbers[0]));
    const bool is_fine = graph->offsets && graph->referrers && numbers;

    for (uint32_t i = 0; is_fine && i < graph->edge_count; i++) {
        numbers[i] = number_of(&graph->table, pass->edges[i]);
        graph->offsets[numbers[i]]++;
    }
    for (uint32_t i = 1; is_fine && i <= graph->object_count; i++)
        graph->offsets[i] += graph->offsets[i - 1];
    /* From the end, so that each offset comes down to its first and the order is kept. */
    for (uint32_t node = graph->node_count; is_fine && node-- > 0;) {
        while (end > pass->starts[node])
            graph->referrers[--graph->offsets[numbers[--end]]] = node;
    }
    free(numbers);
    return is_fine;
}

/* Step 4. */
static void hold(struct graph *graph, void *objects)
{
    py.ref(objects);
    graph->objects = objects;
    for (uint32_t i = graph->found; i < graph->node_count; i++)
        py.ref(graph->nodes[i]);
}

static void graph_free(struct graph *graph)
{
    if (graph->objects) {
        for (uint32_t i = graph->found; i < graph->node_count; i++)
            py.unref(graph->nodes[i]);
        py.unref(graph->objects);
    }
    if (graph->tensors)
        py.unref(graph->tensors);
    give_pages(graph->nodes, NODES_MAX * sizeof(graph->nodes[0]));
    table_done(&graph->table);
    free(graph->offsets);
    free(graph->referrers);
    free(graph);
}

static bool make_pass(struct pass *pass, void *objects, void *kinds, void *pairs)
{
    return pass->graph->nodes && pass->graph->tensors && pass->starts && pass->edges &&
           read_kinds(kinds, &pass->kinds) && add_pairs(pass, pairs) && add_all(pass, objects) &&
           traverse_all(pass, pairs) && sort_edges(pass);
}

/* NULL when a limit was reached. */
static struct graph *graph_new(void *objects, void *kinds, void *pairs, uint64_t limit_ns)
{
    struct graph *graph = calloc(1, sizeof(*graph));

    if (!graph)
        return NULL;
    graph->nodes = take_pages(NODES_MAX * sizeof(graph->nodes[0]));
    graph->tensors = py.new_list(0);
    struct pass pass = {
        .graph = graph,
        .starts = take_pages(NODES_MAX * sizeof(pass.starts[0])),
        .edges = take_pages(EDGES_MAX * sizeof(pass.edges[0])),
        .limit_ns = cpu_ns() + limit_ns,
    };
    const bool is_fine = make_pass(&pass, objects, kinds, pairs);
    if (is_fine)
        hold(graph, objects);
    give_pages(pass.starts, NODES_MAX * sizeof(pass.starts[0]));
    give_pages(pass.edges, EDGES_MAX * sizeof(pass.edges[0]));
    free(pass.kinds.list);
    if (is_fine)
        return graph;
    graph_free(graph);
    return NULL;
}

/* ---- Python's functions ---- */

static bool find_python(void)
{
    const struct {
        const char *name;
        void *function;
    } wanted[] = {
        {"PyBool_FromLong", &py.bool_of}, /* the first: it says that another is missing */
        {"PyList_New", &py.new_list},
        {"PyList_Size", &py.list_size},
        {"PyList_GetItem", &py.list_item},
        {"PyList_Append", &py.list_append},
        {"PyList_SetItem", &py.list_set},
        {"PyTuple_GetItem", &py.tuple_item},
        {"PyLong_AsUnsignedLong", &py.number},
        {"PyObject_CallFunctionObjArgs", &py.call},
        {"PyObject_Type", &py.type_of},
        {"PyType_GetSlot", &py.slot},
        {"PyCapsule_New", &py.new_capsule},
        {"PyCapsule_GetPointer", &py.capsule_pointer},
        {"PyErr_Occurred", &py.has_error},
        {"PyErr_SetString", &py.set_error},
        {"Py_IncRef", &py.ref},
        {"Py_DecRef", &py.unref},
        {"_Py_NoneStruct", &py.none},
        {"PyExc_TypeError", &py.type_error},
    };

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *symbol = dlsym(RTLD_DEFAULT, wanted[i].name);
        if (!symbol)
            return false;
        memcpy(wanted[i].function, &symbol, sizeof(symbol)); /* ISO C has no such cast */
    }
    return true;
}

static void *none(void)
{
    py.ref(py.none);
    return py.none;
}

static bool has_arguments(ssize_t count, ssize_t wanted)
{
    if (count != wanted)
        py.set_error(*py.type_error, "another number of arguments is expected");
    return count == wanted;
}

/* Whether the type of an object is where we look for it. */
static bool is_laid_out(void *thing)
{
    void *type = py.type_of(thing);
    const bool is_same = type && type == type_of(thing);

    if (type)
        py.unref(type);
    return is_same;
}

/* A list with an item more; NULL, and without it, when memory is short. */
static void *append(void *list, void *item)
{
    if (list && py.list_append(list, item) < 0) {
        py.unref(list);
        return NULL;
    }
    return list;
}

/* The types of all objects of a list, in which those that are 'left' become None. */
static void *types_of(void *objects, void *left)
{
    struct kinds kinds = {0};

    if (py.list_size(objects) > NODES_MAX || !kinds_init(&kinds, 1024))
        return NULL;
    void *found = py.new_list(0);
    for (ssize_t i = 0; found && i < py.list_size(left); i++) {
        struct kind *kind = learn_kind(&kinds, py.list_item(left, i));
        if (kind)
            kind->flags = TTM_HEAP_INSIDE;
        found = append(found, py.list_item(left, i));
    }
    for (ssize_t i = 0; found && i < py.list_size(objects); i++) {
        void *type = type_of(py.list_item(objects, i));
        const uint32_t known = kinds.used;
        const struct kind *kind = learn_kind(&kinds, type);
        if (kind && kinds.used > known)
            found = append(found, type);
        if (kind && (kind->flags & TTM_HEAP_INSIDE))
            (void)py.list_set(objects, i, none());
        if (!kind) {
            py.unref(found);
            found = NULL;
        }
    }
    free(kinds.list);
    return found;
}

static void *heap_objects(void *self, void *const *args, ssize_t count)
{
    (void)self;
    if (!find_python() || !is_laid_out(py.none))
        return py.bool_of ? py.bool_of(0) : NULL;
    void *objects = has_arguments(count, 2) ? py.call(args[0], NULL) : NULL;
    if (!objects)
        return NULL;
    const bool is_known = is_laid_out(objects);
    void *types = is_known ? types_of(objects, args[1]) : NULL;
    void *found = types ? append(append(py.new_list(0), objects), types) : NULL;
    py.unref(objects);
    if (types)
        py.unref(types);
    if (!is_known)
        return py.bool_of(0);
    return found || py.has_error() ? found : none();
}

static void *heap_special(void *self, void *const *args, ssize_t count)
{
    struct kinds kinds = {0};
    (void)self;

    if (!has_arguments(count, 2))
        return NULL;
    void *found = read_kinds(args[1], &kinds) ? py.new_list(0) : none();
    for (ssize_t i = 0; found && found != py.none && i < py.list_size(args[0]); i++) {
        void *thing = py.list_item(args[0], i);
        if (kind_of(&kinds, type_of(thing))->flags & TTM_HEAP_SPECIAL)
            found = append(found, thing);
    }
    free(kinds.list);
    return found;
}

static void free_capsule(void *capsule)
{
    struct graph *graph = py.capsule_pointer(capsule, GRAPH);

    if (graph)
        graph_free(graph);
}

static void *heap_graph(void *self, void *const *args, ssize_t count)
{
    (void)self;
    if (!has_arguments(count, 4))
        return NULL;
    struct graph *graph = graph_new(args[0], args[1], args[2], py.number(args[3]));
    if (!graph)
        return py.has_error() ? NULL : none();
    void *capsule = py.new_capsule(graph, GRAPH, free_capsule);
    if (!capsule)
        graph_free(graph);
    return capsule;
}

static void *heap_tensors(void *self, void *const *args, ssize_t count)
{
    (void)self;
    const struct graph *graph = has_arguments(count, 1) ? py.capsule_pointer(args[0], GRAPH) : NULL;
    if (!graph)
        return NULL;
    py.ref(graph->tensors);
    return graph->tensors;
}

static void *heap_holders(void *self, void *const *args, ssize_t count)
{
    (void)self;
    const struct graph *graph = has_arguments(count, 3) ? py.capsule_pointer(args[0], GRAPH) : NULL;
    if (!graph)
        return NULL;
    void *found = py.new_list(0);
    if (!has(&graph->table, args[1]))
        return found;
    const uint32_t number = number_of(&graph->table, args[1]);
    unsigned long rest = py.number(args[2]);
    uint32_t last = UINT32_MAX;
    for (uint32_t i = graph->offsets[number]; found && i < graph->offsets[number + 1]; i++) {
        const uint32_t node = graph->referrers[i];
        if (node == last || graph->nodes[node] == py.none) /* it may refer to it twice */
            continue;
        last = node;
        if (rest-- == 0)
            break;
        found = append(found, graph->nodes[node]);
    }
    return found;
}

struct ttm_python_method ttm_python_heap_methods[] = {
    {"heap_objects", heap_objects, ARGUMENTS_FAST, NULL},
    {"heap_special", heap_special, ARGUMENTS_FAST, NULL},
    {"heap_graph", heap_graph, ARGUMENTS_FAST, NULL},
    {"heap_tensors", heap_tensors, ARGUMENTS_FAST, NULL},
    {"heap_holders", heap_holders, ARGUMENTS_FAST, NULL},
    {0},
};
