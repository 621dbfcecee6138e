/* What the contract tests share: a place to run a port (memory, or a real one on a loop), waiting, and a small runner.
 *
 * A test is written once and runs on every rig. Real parts are found through SLUICE_KAFKA_BROKERS and SLUICE_REDIS_URL;
 * without them their rig is left out, or fails when SLUICE_REQUIRE_REAL=1. */
#ifndef SL_TESTS_CONTRACT_RIG_H
#define SL_TESTS_CONTRACT_RIG_H

#include "common/adapters/memory/memory.h"
#include "common/ports/broker.h"
#include "common/ports/clock.h"
#include "common/ports/store.h"
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct rig {
	const char *name; /* "memory", "kafka", "redis", "uv" */
	bool real;
	struct sl_memory *world; /* memory */
	uv_loop_t loop;		 /* real */
	int logged;		 /* lines that the adapter wanted people to see */
	bool up;		 /* redis: state */
	char last_log[512];
};

struct test {
	const char *name;
	void (*run)(struct rig *rig);
	const char *only; /* name of the one rig that can do this; NULL: all */
};

/* Names of topics, keys and groups that no earlier run has used. Borrowed until 16 more were asked for. */
const char *rig_name(const char *base);

struct sl_broker *rig_broker(struct rig *rig, const char *client, const char *instance_id);
void rig_topic(struct rig *rig, const char *topic, int32_t partitions, size_t bytes_max);
struct sl_store *rig_store(struct rig *rig, const char *client, const char *prefix, const char *query);
struct sl_clock *rig_clock(struct rig *rig);

/* Lets things happen until done(arg), at most timeout_ms; false: it did not come. */
bool rig_until(struct rig *rig, bool (*done)(void *arg), void *arg, int timeout_ms);
/* Lets things happen for a while (memory: until nothing is pending). */
void rig_settle(struct rig *rig, int ms);

/* Runs all tests on the memory rig and on the real one. env: variable that must be set for the real one, NULL: none;
 * real_name NULL: memory only. Returns the exit code. */
int rig_main(int argc, char **argv, const char *real_name, const char *env, const struct test *tests, int count);

/* A failed check ends the program's test with place and text; the run goes on with the next test. */
#define CHECK(cond) rig_check((cond), __FILE__, __LINE__, #cond)
#define CHECK_INT(a, b) rig_check_int((int64_t)(a), (int64_t)(b), __FILE__, __LINE__, #a " == " #b)
#define CHECK_STR(a, b) rig_check_str((a), (b), __FILE__, __LINE__, #a " == " #b)
void rig_check(bool ok, const char *file, int line, const char *text);
void rig_check_int(int64_t a, int64_t b, const char *file, int line, const char *text);
void rig_check_str(const char *a, const char *b, const char *file, int line, const char *text);

#endif
