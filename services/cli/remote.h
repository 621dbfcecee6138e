/* A connection of the CLI to a running Sluice: commands on sluice.commands with their answers from sluice.lifecycle, and reading
 * what Redis holds. Everything waits with a time limit. One thread. */
#ifndef SL_CLI_REMOTE_H
#define SL_CLI_REMOTE_H

#include <uv.h>
#include "common/app/config.h"
#include "common/engine/engine.h"
#include "common/model/value.h"
#include "common/ports/broker.h"
#include "common/ports/store.h"
#include "services/cli/cli.h"
#include "services/common/topics.h"

struct sl_remote {
	struct sl_config cfg;
	struct sl_arena arena;
	struct sl_topics topics;
	uv_loop_t loop;
	struct sl_broker *broker;       /* NULL: not asked for */
	struct sl_store *store;
	uv_timer_t timer;
	bool timed_out, ready;
	const char *ns;                 /* --namespace */
};

enum { SL_REMOTE_KAFKA = 1, SL_REMOTE_REDIS = 2 };

/* Reads the configuration (rest: options of the table that stood on the command line) and connects. Returns an exit code;
 * SL_EXIT_OK: connected, close it. Errors are printed. */
int sl_remote_open(struct sl_remote *remote, const struct sl_cli_command *cmd, int what, const char *ns, char **rest, int rest_count);
void sl_remote_close(struct sl_remote *remote);
/* Runs the loop until *done or the time is over: false, *done still false. */
bool sl_remote_wait(struct sl_remote *remote, const bool *done, int64_t timeout_ms);
/* Prints why the other side does not answer; returns SL_EXIT_UNREACHABLE. */
int sl_remote_unreachable(const struct sl_remote *remote, const char *what);

/* --- Kafka --- */
/* Number of partitions of a topic, waiting for metadata. Returns an exit code; errors are printed. */
int sl_remote_partitions(struct sl_remote *remote, const char *topic, int32_t *ret);
/* The same without a word: SL_ENOTFOUND, SL_EUNREACHABLE. */
int sl_remote_topic(struct sl_remote *remote, const char *topic, int32_t *ret);
/* Produces and waits for the acknowledgement. Returns an exit code; errors are printed. */
int sl_remote_produce(struct sl_remote *remote, const struct sl_record *rec);
/* Several, in order. ret_errs: what became of each (0: acknowledged; SL_EUNREACHABLE: unknown). SL_EXIT_UNREACHABLE, printed: not all were
 * answered in time. */
int sl_remote_produce_all(struct sl_remote *remote, const struct sl_record *const *recs, int count, int *ret_errs);
/* Visits records of a topic from `from_end ? its end : its beginning` until visit says false or, with `follow` false, the end as of now is
 * reached; begin (may be NULL) is called once when reading begins. timeout_ms (0: none) bounds all of it with `follow`, else the wait
 * for the next record. Returns an exit code; an end that was not reached is SL_EXIT_UNREACHABLE. */
struct sl_remote_at { int32_t partition; int64_t offset, low, high; };
struct sl_remote_read {
	const char *topic;
	struct sl_remote_at *at;        /* only this partition, from that offset on; low and high tell what it holds. NULL: all */
	bool from_end, follow;
	int64_t timeout_ms;
	int (*begin)(void *arg);                                /* returns an exit code */
	bool (*visit)(void *arg, const struct sl_record *rec);  /* false: enough */
	void *arg;
};
int sl_remote_read(struct sl_remote *remote, const struct sl_remote_read *read, bool *ret_enough);

/* Sends a command of type io.sluice.NAME (takes data) and waits for its answer. *ret_data: the answer's data (owned).
 * Returns an exit code: refused is SL_EXIT_WRONG, printed unless `quiet`. with_events: also waits until `until` says so of a
 * lifecycle event that comes after the answer (start --wait). */
struct sl_remote_until {
	bool (*event)(void *arg, jv ev);        /* borrows ev; true: enough */
	void *arg;
	int64_t timeout_ms;
};
int sl_remote_command(struct sl_remote *remote, const char *name, const char *key, jv data, const struct sl_remote_until *until,
	jv *ret_data);

/* --- Redis --- */
/* Waits for the answer; copies. Return an exit code; errors are printed. */
int sl_remote_load(struct sl_remote *remote, int32_t partition, const char *key, jv *ret_fields);      /* {field: text} */
int sl_remote_write(struct sl_remote *remote, const struct sl_op *ops, int count);                     /* keys outside partitions */
int sl_remote_range(struct sl_remote *remote, int32_t partition, const char *key, int max, jv *ret);    /* [[member, score]] */
int sl_remote_stream(struct sl_remote *remote, int32_t partition, const char *key, int max, jv *ret);   /* [{id, field: text}] */

#endif
