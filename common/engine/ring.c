/* The ring of marks (R6): slots in order of writing, with a small hash index beside them once it pays. */
#include "common/engine/ring.h"

#include "common/base/text.h"
#include <string.h>

#define LAP_BIT ((uint64_t)1 << 63)
#define SLOTS_MAX 32768u
#define INDEX_FROM 32u /* below that many slots a scan is quicker than an index is big */

static uint64_t *slots_of(const struct sl_ring *ring)
{
	return (uint64_t *)(void *)ring->slots.data;
}

static uint32_t slot_count(const struct sl_ring *ring)
{
	return (uint32_t)(ring->slots.len / sizeof(uint64_t));
}

void sl_ring_init(struct sl_ring *ring, int max)
{
	*ring = (struct sl_ring){.settled = true};
	ring->max = max < 1 ? 1u : (uint32_t)max > SLOTS_MAX ? SLOTS_MAX : (uint32_t)max;
	sl_buf_init(&ring->slots);
	sl_buf_init(&ring->index);
}

void sl_ring_release(struct sl_ring *ring)
{
	sl_buf_release(&ring->slots);
	sl_buf_release(&ring->index);
}

/* FNV-1a with a final mix: its highest bits are as good as its lowest. */
uint64_t sl_ring_mark(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	uint64_t h = 0xcbf29ce484222325u;
	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
	h = (h ^ h >> 33) & ~LAP_BIT;
	return h ? h : 1;
}

uint64_t sl_ring_mark_text(const char *text)
{
	return sl_ring_mark(text, strlen(text));
}

/* --- index --- */

static uint32_t index_mask(const struct sl_ring *ring)
{
	return (uint32_t)(ring->index.len / sizeof(uint16_t)) - 1;
}

static void index_put(struct sl_ring *ring, uint32_t slot)
{
	uint16_t *table = (uint16_t *)(void *)ring->index.data;
	uint32_t mask = index_mask(ring);
	uint32_t i = (uint32_t)(slots_of(ring)[slot] & mask);
	while (table[i])
		i = (i + 1) & mask;
	table[i] = (uint16_t)(slot + 1);
}

static void index_drop(struct sl_ring *ring)
{
	sl_buf_release(&ring->index);
	sl_buf_init(&ring->index);
}

/* Makes the index if the ring is big enough for one and has none that fits. */
static void index_ensure(struct sl_ring *ring)
{
	uint32_t n = slot_count(ring);
	uint32_t have = (uint32_t)(ring->index.len / sizeof(uint16_t));
	if (n < INDEX_FROM || have >= 2 * n)
		return;
	uint32_t size = 4 * INDEX_FROM;
	while (size < 2 * n + 2)
		size *= 2;
	index_drop(ring);
	sl_buf_reserve(&ring->index, size * sizeof(uint16_t));
	memset(ring->index.data, 0, size * sizeof(uint16_t));
	ring->index.len = size * sizeof(uint16_t);
	for (uint32_t i = 0; i < n; i++)
		if (slots_of(ring)[i])
			index_put(ring, i);
}

/* Removes a slot, moving back what was pushed on by it (open addressing without tombstones). */
static void index_remove(struct sl_ring *ring, uint32_t slot)
{
	uint16_t *table = (uint16_t *)(void *)ring->index.data;
	uint32_t mask = index_mask(ring);
	uint32_t hole = (uint32_t)(slots_of(ring)[slot] & mask);
	while (table[hole] != slot + 1)
		hole = (hole + 1) & mask;
	for (uint32_t i = (hole + 1) & mask; table[i]; i = (i + 1) & mask) {
		uint32_t home = (uint32_t)(slots_of(ring)[table[i] - 1] & mask);
		if (((i - home) & mask) >= ((i - hole) & mask)) {
			table[hole] = table[i];
			hole = i;
		}
	}
	table[hole] = 0;
}

/* --- the ring --- */

/* After loading: the first slot that is empty or of another lap than slot 0's is written next. */
static void settle(struct sl_ring *ring)
{
	if (ring->settled)
		return;
	ring->settled = true;
	const uint64_t *slots = slots_of(ring);
	uint32_t n = slot_count(ring), next = 0;
	uint64_t lap = n ? slots[0] & LAP_BIT : 0;
	while (next < n && slots[next] && (slots[next] & LAP_BIT) == lap)
		next++;
	if (next >= ring->max) {
		next = 0;
		lap ^= LAP_BIT;
	}
	ring->next = next;
	ring->lap = lap;
}

bool sl_ring_has(struct sl_ring *ring, uint64_t mark)
{
	settle(ring);
	index_ensure(ring);
	const uint64_t *slots = slots_of(ring);
	uint32_t n = slot_count(ring);
	mark &= ~LAP_BIT;
	if (!ring->index.len) {
		for (uint32_t i = 0; i < n; i++)
			if ((slots[i] & ~LAP_BIT) == mark)
				return mark != 0;
		return false;
	}
	const uint16_t *table = (const uint16_t *)(const void *)ring->index.data;
	uint32_t mask = index_mask(ring);
	for (uint32_t i = (uint32_t)(mark & mask); table[i]; i = (i + 1) & mask)
		if ((slots[table[i] - 1] & ~LAP_BIT) == mark)
			return true;
	return false;
}

bool sl_ring_add(struct sl_ring *ring, uint64_t mark)
{
	mark &= ~LAP_BIT;
	mark = mark ? mark : 1;
	if (sl_ring_has(ring, mark))
		return false;
	uint32_t slot = ring->next;
	uint64_t value = mark | ring->lap;
	if (slot == slot_count(ring)) {
		sl_buf_add(&ring->slots, &value, sizeof value);
	} else {
		if (ring->index.len && slots_of(ring)[slot])
			index_remove(ring, slot);
		slots_of(ring)[slot] = value;
	}
	if (ring->index.len && index_mask(ring) + 1 >= 2 * slot_count(ring))
		index_put(ring, slot);
	else
		index_drop(ring);
	if (++ring->next == ring->max) {
		ring->next = 0;
		ring->lap ^= LAP_BIT;
	}
	if (ring->changed < ring->max)
		ring->changed++;
	return true;
}

/* Slots behind the end of a shortened ring come first: they are the oldest. */
static uint32_t slot_by_age(struct sl_ring *ring, uint32_t i)
{
	uint32_t n = slot_count(ring);
	return n ? (ring->next + i) % n : 0;
}

uint32_t sl_ring_count(struct sl_ring *ring)
{
	settle(ring);
	uint32_t count = 0;
	for (uint32_t i = 0; i < slot_count(ring); i++)
		count += slots_of(ring)[i] != 0;
	return count;
}

uint64_t sl_ring_at(struct sl_ring *ring, uint32_t i)
{
	settle(ring);
	for (uint32_t k = 0; k < slot_count(ring); k++) {
		uint64_t value = slots_of(ring)[slot_by_age(ring, k)];
		if (value && i-- == 0)
			return value & ~LAP_BIT;
	}
	return 0;
}

/* --- stored form --- */

uint32_t sl_ring_changed(const struct sl_ring *ring)
{
	return ring->changed;
}

uint32_t sl_ring_changed_slot(const struct sl_ring *ring, uint32_t i)
{
	return (ring->next + ring->max - ring->changed + i) % ring->max;
}

static void hex_of(uint64_t value, char ret[16])
{
	for (int i = 15; i >= 0; i--, value >>= 4)
		ret[i] = "0123456789abcdef"[value & 15];
}

/* False unless it is 16 hex digits. */
static bool hex_read(const char *text, size_t len, uint64_t *ret)
{
	uint64_t value = 0;
	if (len != 16)
		return false;
	for (size_t i = 0; i < len; i++) {
		const char *digit = text[i] ? strchr("0123456789abcdef", text[i]) : NULL;
		if (!digit)
			return false;
		value = value << 4 | (uint64_t)(digit - "0123456789abcdef");
	}
	*ret = value;
	return true;
}

void sl_ring_slot_text(const struct sl_ring *ring, uint32_t slot, char ret[static SL_RING_TEXT])
{
	ret[0] = '"';
	hex_of(slots_of(ring)[slot], ret + 1);
	ret[17] = '"';
	ret[18] = 0;
}

void sl_ring_committed(struct sl_ring *ring)
{
	ring->changed = 0;
}

int sl_ring_load(struct sl_ring *ring, const char *slot_text, struct sl_bytes value)
{
	const char *text = value.ptr;
	size_t len = value.len;
	int64_t slot;
	uint64_t mark;
	if (sl_int_name(slot_text, &slot) || slot < 0 || slot >= SLOTS_MAX)
		return SL_EPARSE;
	if (len == 18 && text[0] == '"' && text[17] == '"') {
		text++;
		len -= 2;
	}
	if (!text || !hex_read(text, len, &mark))
		return SL_EPARSE;
	const uint64_t none = 0;
	while (slot_count(ring) <= (uint32_t)slot)
		sl_buf_add(&ring->slots, &none, sizeof none);
	slots_of(ring)[slot] = mark;
	index_drop(ring);
	ring->settled = false;
	return 0;
}

jv sl_ring_json(struct sl_ring *ring)
{
	settle(ring);
	jv marks = jv_array();
	for (uint32_t k = 0; k < slot_count(ring); k++) {
		uint64_t value = slots_of(ring)[slot_by_age(ring, k)];
		char hex[16];
		if (!value)
			continue;
		hex_of(value & ~LAP_BIT, hex);
		marks = jv_array_append(marks, jv_string_sized(hex, 16));
	}
	return marks;
}

void sl_ring_add_json(struct sl_ring *ring, jv marks)
{
	if (jv_get_kind(marks) != JV_KIND_ARRAY)
		return;
	int n = jv_array_length(jv_copy(marks));
	for (int i = 0; i < n; i++) {
		jv mark = jv_array_get(jv_copy(marks), i);
		uint64_t value;
		if (jv_get_kind(mark) == JV_KIND_STRING &&
			hex_read(jv_string_value(mark), strlen(jv_string_value(mark)), &value))
			(void)sl_ring_add(ring, value);
		jv_free(mark);
	}
}

size_t sl_ring_bytes(const struct sl_ring *ring)
{
	return ring->slots.cap + ring->index.cap;
}
