/* A mailbox's stored form: a hash of small JSON values, read whole and written in parts. */
#include "common/engine/mailbox_int.h"

#include "common/base/text.h"
#include <inttypes.h>
#include <string.h>

/* --- reading --- */

static struct box_item *new_item(enum box_list_kind kind)
{
	return kind == BOX_SUBS	   ? sl_box_alloc(1, sizeof(struct box_sub))
	       : kind == BOX_JOINS ? sl_box_alloc(1, sizeof(struct box_join))
				   : sl_box_alloc(1, sizeof(struct box_early));
}

static void load_item(struct sl_mailbox *box, enum box_list_kind kind, int64_t n, struct box_field field)
{
	struct box_list *list = &box->lists[kind];
	struct box_item *item = new_item(kind), *after = list->tail;
	item->field = field;
	item->n = n;
	while (after && after->n > n)
		after = after->prev;
	item->prev = after;
	item->next = after ? after->next : list->head;
	*(item->prev ? &item->prev->next : &list->head) = item;
	*(item->next ? &item->next->prev : &list->tail) = item;
	list->count++;
	list->last_n = n > list->last_n ? n : list->last_n;
	sl_box_item_read(box, kind, item);
}

/* Does the object have what the rest of the code relies on? */
static bool item_sound(enum box_list_kind kind, jv obj)
{
	jv event = sl_json_get(obj, "event");
	bool has_event = jv_get_kind(event) == JV_KIND_OBJECT;
	jv_free(event);
	if (kind == BOX_SUBS)
		return sl_json_str(obj, "instance") && sl_json_str(obj, "workflow");
	return has_event && (kind == BOX_EARLY || sl_json_str(obj, "workflow"));
}

static int damaged(struct sl_mailbox *box, const char *name, struct sl_diags *diags)
{
	return sl_diag_error(
		diags, SL_EPARSE, SL_NOWHERE, NULL, "mailbox %s: stored field %s is damaged", box->id, name);
}

/* One parsed field; takes obj. */
static int load_json(struct sl_mailbox *box, const char *name, jv obj, size_t size, struct sl_diags *diags)
{
	struct box_field field = {.obj = obj, .stored = true, .size = BOX_ITEM_BYTES + size};
	int64_t n;
	for (int kind = 0; kind < BOX_LIST_COUNT; kind++) {
		if (name[0] != sl_box_prefix[kind])
			continue;
		if (sl_int_name(name + 2, &n) || !item_sound((enum box_list_kind)kind, obj))
			goto bad;
		load_item(box, (enum box_list_kind)kind, n, field);
	}
	if (name[0] == 'h') {
		if (jv_get_kind(obj) != JV_KIND_OBJECT)
			goto bad;
		jv_free(box->header.obj);
		box->header = field;
		box->now_ms = sl_json_int(obj, "now", 0);
		sl_box_read_key(box);
	} else if (name[0] == 'c') {
		if (!sl_json_str(obj, "instance"))
			goto bad;
		sl_box_wf(box, name + 2)->claim = field;
		box->claim_count++;
	} else if (name[0] == 'o') {
		if (jv_get_kind(obj) != JV_KIND_NUMBER)
			goto bad;
		struct box_field *origin = sl_box_alloc(1, sizeof(*origin));
		*origin = field;
		sl_map_set(&box->origins, name + 2, origin);
	}
	box->bytes += field.size;
	return 0;
bad:
	jv_free(obj);
	return damaged(box, name, diags);
}

static int load_field(struct sl_mailbox *box, const struct sl_field *field, struct sl_diags *diags)
{
	/* What was let in is not refused here: an event stands a little deeper in our object than it came. */
	static const struct sl_json_limits limits = {.depth_max = 230, .round_integers = true};
	bool header = strcmp(field->name, "h") == 0;
	jv obj;
	if (!header && (!field->name[0] || field->name[1] != ':'))
		return 0; /* unknown: left alone */
	if (field->name[0] == 'r' || field->name[0] == 'i') {
		struct sl_ring *ring = field->name[0] == 'r' ? &box->events : &box->effects;
		return sl_ring_load(ring, field->name + 2, field->value) ? damaged(box, field->name, diags) : 0;
	}
	if (!header && !strchr("sjeco", field->name[0]))
		return 0;
	if (sl_json_parse(field->value.ptr, field->value.len, &limits, &obj, NULL))
		return damaged(box, field->name, diags);
	return load_json(box, field->name, obj, field->value.len, diags);
}

int sl_mailbox_load(const struct sl_engine *eng, struct sl_mailbox *box, const struct sl_field *fields, int count,
	struct sl_diags *diags)
{
	sl_ring_release(&box->events);
	sl_ring_release(&box->effects);
	sl_ring_init(&box->events, eng->limits.ring_max);
	sl_ring_init(&box->effects, eng->limits.effect_ring_max);
	for (int i = 0; i < count; i++) {
		int err = load_field(box, &fields[i], diags);
		if (err)
			return err;
	}
	box_each(&box->lists[BOX_SUBS], it) /* in order of number, so that the chains are, too */
		sl_box_sub_link(box, (struct box_sub *)it);
	box->exists = box->stored = count > 0;
	sl_box_reckon(box);
	return 0;
}

/* --- writing --- */

static struct sl_bytes encoded(struct sl_arena *arena, struct sl_buf *buf, jv obj)
{
	sl_buf_clear(buf);
	sl_json_write(buf, obj);
	return (struct sl_bytes){sl_arena_strn(arena, buf->data, buf->len), buf->len};
}

static void ring_changes(const struct sl_ring *ring, char prefix, struct sl_arena *arena, struct sl_field *out)
{
	char text[SL_RING_TEXT];
	for (uint32_t i = 0; i < sl_ring_changed(ring); i++) {
		uint32_t slot = sl_ring_changed_slot(ring, i);
		sl_ring_slot_text(ring, slot, text);
		out[i].name = sl_arena_printf(arena, "%c:%" PRIu32, prefix, slot);
		out[i].value = (struct sl_bytes){sl_arena_str(arena, text), strlen(text)};
	}
}

void sl_mailbox_changes(
	struct sl_mailbox *box, struct sl_arena *arena, struct sl_field **ret, int *ret_count, bool *ret_gone)
{
	*ret = NULL;
	*ret_count = 0;
	*ret_gone = box->gone;
	if (box->gone)
		return;
	uint32_t events = sl_ring_changed(&box->events), effects = sl_ring_changed(&box->effects);
	size_t n = box->dirty.count + events + effects, at = 0;
	struct sl_field *out = SL_NEWN(arena, struct sl_field, n ? n : 1);
	struct sl_buf buf;
	sl_buf_init(&buf);
	sl_map_each(&box->dirty, e)
	{
		struct box_field *field = e->value;
		out[at].name = sl_arena_str(arena, e->key);
		if (field != &sl_box_deleted)
			out[at].value = encoded(arena, &buf, field->obj);
		at++;
	}
	ring_changes(&box->events, 'r', arena, out + at);
	ring_changes(&box->effects, 'i', arena, out + at + events);
	sl_buf_release(&buf);
	*ret = out;
	*ret_count = (int)n;
}

void sl_mailbox_committed(struct sl_mailbox *box)
{
	if (box->gone) {
		char *ns = box->ns, *id = box->id;
		bool local = box->local;
		sl_box_release(box);
		*box = (struct sl_mailbox){.ns = ns, .id = id, .local = local};
		sl_box_init(box);
		return;
	}
	sl_map_each(&box->dirty, e) if (e->value != &sl_box_deleted)((struct box_field *)e->value)->stored = true;
	sl_map_release(&box->dirty, NULL);
	sl_ring_committed(&box->events);
	sl_ring_committed(&box->effects);
	box->stored = box->exists;
}

void sl_mailbox_summary(const struct sl_mailbox *box, struct sl_summary *ret)
{
	*ret = (struct sl_summary){.exists = box->exists && !box->gone};
	if (!ret->exists)
		return;
	ret->created_ms = sl_json_int(box->header.obj, "created", 0);
	ret->updated_ms = box->now_ms;
	ret->expires_ms = box->expires_ms;
}

size_t sl_mailbox_bytes(const struct sl_mailbox *box)
{
	return sizeof(*box) + box->bytes + sl_ring_bytes(&box->events) + sl_ring_bytes(&box->effects) + 500;
}

int64_t sl_mailbox_now(const struct sl_mailbox *box)
{
	return box->now_ms;
}
