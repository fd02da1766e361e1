/* SPDX-License-Identifier: Apache-2.0 */
/*
 * programs - what each program of the runtime has in L1: circular buffers,
 * dataflow buffers, scratchpads and kernels; and telling libttmem of it.
 *
 * The runtime says these once, when it compiles and lays out a program. The records
 * are kept also while tracking is off, so that they can be told later. A program
 * that was made for some chips of a mesh is told of on those alone, although the
 * runtime lays it out for all.
 *
 * One lock guards the records. It comes after the gate, in which everything here is
 * called but for the ends of programs, which enter it themselves.
 */
#ifndef TTM_HOOK_PROGRAMS_H
#define TTM_HOOK_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "hook/dispatch.h"
#include "hook/metal.h"
#include "hook/parts.h"

struct ttm_program;

/* The program behind a ProgramImpl, NULL when there are too many or the runtime cannot tell. */
struct ttm_program *ttm_programs_meet(const struct ttm_runtime *runtime, const void *impl);

/* NULL when it was never met. It lasts until the program's end. */
struct ttm_program *ttm_programs_find(const void *impl);

/* ~ProgramImpl(), and deallocate_circular_buffers(), which gives those back alone. */
void ttm_programs_end(const void *impl);
void ttm_programs_free_cbs(const void *impl);

/*
 * The runtime has laid out the program anew on a device or mesh: these parts take the
 * place of those it had of that source. 'parts' is empty afterwards.
 */
void ttm_program_lay_out(struct ttm_program *program, const struct ttm_runtime *runtime,
                         const void *device, enum ttm_part_source source, struct ttm_parts *parts);

/* The program is for these chips of its mesh only. */
void ttm_program_narrow(struct ttm_program *program, const struct ttm_runtime *runtime,
                        const struct ttm_mesh_range *range);

/* Its beginning. */
static inline struct ttm_dispatch *ttm_program_dispatch_of(struct ttm_program *program)
{
    return (struct ttm_dispatch *)program;
}

/* It is sent to run, inside the gate. The one function that takes no lock. */
void ttm_program_dispatch(struct ttm_program *program, bool is_tracking);

/* Does it have anything of that source? */
bool ttm_program_has(struct ttm_program *program, enum ttm_part_source source);

/* Above all that the program has on these cores; 0 for nothing. */
uint64_t ttm_program_end_on(struct ttm_program *program, const struct ttm_core_set *cores);

/* What it takes in L1: on all cores of a chip together, and in the fullest of them. */
void ttm_program_extent(struct ttm_program *program, uint64_t *ret_bytes, uint64_t *ret_core_bytes);

/* A chip was closed: what programs had there is gone, on their other chips too. */
void ttm_programs_close_chip(uint16_t id);

/* Tells of all programs again, in the order they were last sent to run. Gate closed. */
void ttm_programs_tell_all(void);

/* In the child of a fork: what programs have was told of by the parent, and is its own. */
void ttm_programs_after_fork(void);

#endif /* TTM_HOOK_PROGRAMS_H */
