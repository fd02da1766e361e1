/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list - an intrusive doubly linked ring with a head.
 *
 * The owner embeds a struct ttm_list in its object; the list owns nothing. A
 * link that is in no list points at itself, so removing it twice is harmless.
 */
#ifndef TTM_BASE_LIST_H
#define TTM_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct ttm_list {
    struct ttm_list *prev;
    struct ttm_list *next;
};

static inline void ttm_list_init(struct ttm_list *head)
{
    head->prev = head;
    head->next = head;
}

static inline bool ttm_list_is_empty(const struct ttm_list *head)
{
    return head->next == head;
}

static inline void ttm_list_append(struct ttm_list *head, struct ttm_list *link)
{
    link->prev = head->prev;
    link->next = head;
    head->prev->next = link;
    head->prev = link;
}

static inline void ttm_list_remove(struct ttm_list *link)
{
    link->prev->next = link->next; /* NOLINT(clang-analyzer-unix.Malloc): it cannot follow a ring */
    link->next->prev = link->prev;
    ttm_list_init(link);
}

#define TTM_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* NOLINTBEGIN(bugprone-macro-parentheses): a name that is declared takes no parentheses */

/* The body may not remove 'pos'. */
#define TTM_LIST_FOR_EACH(pos, head)                                                               \
    for (struct ttm_list *pos = (head)->next; pos != (head); pos = pos->next)

/* The body may remove 'pos', nothing else. */
#define TTM_LIST_FOR_EACH_SAFE(pos, head)                                                          \
    for (struct ttm_list *pos = (head)->next, *pos##_next = pos->next; pos != (head);              \
         pos = pos##_next, pos##_next = pos->next)

/* NOLINTEND(bugprone-macro-parentheses) */

#endif /* TTM_BASE_LIST_H */
