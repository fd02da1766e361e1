/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workloads - which programs a workload consists of.
 *
 * A workload is built and sent to run by one thread at a time, as TT-Metal asks;
 * looking one up takes no lock.
 */
#ifndef TTM_HOOK_WORKLOADS_H
#define TTM_HOOK_WORKLOADS_H

#include "hook/programs.h"

/*
 * 'impl' is the runtime's MeshWorkloadImpl, which lasts until ttm_workloads_end(). It
 * gets a program (a ProgramImpl) for a part of its mesh (a MeshCoordinateRange).
 */
void ttm_workloads_add(const struct ttm_runtime *runtime, const void *impl, const void *program,
                       const void *range);

/* Of one with a single program that is at hand: what sending it notes. Else NULL. */
struct ttm_dispatch *ttm_workloads_dispatch_of(const void *impl);

/* It is sent to run. */
void ttm_workloads_dispatch(const void *impl);

void ttm_workloads_end(const void *impl);

void ttm_workloads_after_fork(void);

#endif /* TTM_HOOK_WORKLOADS_H */
