/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of the original protocol asks for a print and may end in the next
 * moment. The lives are kept as they were when it asked, and whoever prints
 * fetches them with the ticket, in its own time.
 */
#include "server/state.h"

#include "base/clock.h"

#define TICKET_NS (10 * TTM_NS_PER_S)

static void drop(struct ttm_ticket *ticket)
{
    if (ticket->account) {
        ticket->account->prints--;
        ttm_account_unref(ticket->account);
    }
    *ticket = (struct ttm_ticket){0};
}

uint32_t ttm_ticket_take(struct ttm_server *server, struct ttm_account *account)
{
    if (account && !ttm_account_has_room(account, account->prints, 1, TTM_USER_PRINTS))
        return 0;
    for (size_t i = 0; i < TTM_TICKETS; i++) {
        struct ttm_ticket *ticket = &server->tickets[i];
        if (ticket->number != 0)
            continue;
        ticket->snap = ttm_snapshot_take(server->reg, server->now_ns);
        if (!ticket->snap)
            return 0;
        if (++server->last_ticket == 0)
            server->last_ticket = 1;
        ticket->number = server->last_ticket;
        ticket->deadline_ns = server->now_ns + TICKET_NS;
        if (account) {
            ticket->account = ttm_account_ref(account);
            account->prints++;
        }
        return ticket->number;
    }
    return 0;
}

struct ttm_snapshot *ttm_ticket_redeem(struct ttm_server *server, uint32_t number)
{
    for (size_t i = 0; i < TTM_TICKETS; i++) {
        struct ttm_ticket *ticket = &server->tickets[i];
        if (ticket->number == 0 || ticket->number != number)
            continue;
        struct ttm_snapshot *snap = ticket->snap;
        drop(ticket);
        return snap;
    }
    return NULL;
}

/* Whether a print is under way that nobody in particular has asked for. */
static bool is_printing_late(const struct ttm_server *server)
{
    for (size_t i = 0; i < TTM_TICKETS; i++) {
        if (server->tickets[i].number != 0 && !server->tickets[i].account)
            return true;
    }
    return false;
}

/*
 * Of several requests that found no ticket, one is granted for each kind, one after the other. Kinds
 * take turns: a client that asks for one of them without end must not keep the others back.
 */
void ttm_ticket_print_late(struct ttm_server *server)
{
    if (is_printing_late(server))
        return;
    for (; server->late_prints != 0; server->next_late_print++) {
        const uint32_t what = server->next_late_print % TTM_PRINT_KINDS;
        if (!(server->late_prints >> what & 1))
            continue;
        const uint32_t ticket = ttm_ticket_take(server, NULL);
        if (ticket == 0)
            return;
        server->late_prints &= ~(1u << what);
        server->options.print(server->options.print_context, (enum ttm_print)what, ticket);
        return;
    }
}

void ttm_ticket_expire(struct ttm_server *server, uint64_t now_ns)
{
    for (size_t i = 0; i < TTM_TICKETS; i++) {
        struct ttm_ticket *ticket = &server->tickets[i];
        if (ticket->number != 0 && now_ns >= ticket->deadline_ns) {
            ttm_snapshot_free(ticket->snap);
            drop(ticket);
        }
    }
}
