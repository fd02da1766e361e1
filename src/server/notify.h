/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify - tells systemd how the service is doing (sd_notify's protocol).
 */
#ifndef TTM_SERVER_NOTIFY_H
#define TTM_SERVER_NOTIFY_H

/* Sends 'state' ("READY=1") to $NOTIFY_SOCKET; does nothing where there is none. */
void ttm_notify(const char *state);

#endif /* TTM_SERVER_NOTIFY_H */
