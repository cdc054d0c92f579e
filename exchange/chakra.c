/* exchange/chakra.c - see chakra.h. Tested: unit/study/test_chakra.c, cli/chakra */
#include "exchange/chakra.h"

#include <string.h>

#define VERSION "0.0.4"

/* Wire types of protobuf. */
enum { VARINT = 0, LENGTH = 2 };

/* Fields of GlobalMetadata, Node and AttributeProto. */
enum { META_VERSION = 1 };
enum { NODE_ID = 1, NODE_NAME = 2, NODE_TYPE = 3, NODE_DATA_DEPS = 5, NODE_MICROS = 7, NODE_ATTR = 10 };
enum { ATTR_NAME = 1, ATTR_INT32 = 7, ATTR_INT64 = 9, ATTR_BOOL = 27, ATTR_TEXT = 29 };

static void append_varint(GString *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        g_string_append_c(out, (char)(value | 0x80));
    g_string_append_c(out, (char)value);
}

static void append_number(GString *out, unsigned field, uint64_t value)
{
    append_varint(out, field << 3 | VARINT);
    append_varint(out, value);
}

static void append_bytes(GString *out, unsigned field, const char *bytes, gsize length)
{
    append_varint(out, field << 3 | LENGTH);
    append_varint(out, length);
    g_string_append_len(out, bytes, (gssize)length);
}

static gsize varint_length(uint64_t value)
{
    gsize length = 1;
    for (; value >= 0x80; value >>= 7)
        length++;
    return length;
}

static void append_attribute(GString *out, const char *name, unsigned field, uint64_t value)
{
    const gsize name_length = strlen(name);
    append_varint(out, NODE_ATTR << 3 | LENGTH);
    append_varint(out, 1 + varint_length(name_length) + name_length + varint_length(field << 3 | VARINT) +
                           varint_length(value));
    append_bytes(out, ATTR_NAME, name, name_length);
    append_number(out, field, value);
}

static void append_text_attribute(GString *out, const char *name, const char *text)
{
    const gsize name_length = strlen(name), length = strlen(text);
    append_varint(out, NODE_ATTR << 3 | LENGTH);
    append_varint(out, 1 + varint_length(name_length) + name_length + varint_length(ATTR_TEXT << 3 | LENGTH) +
                           varint_length(length) + length);
    append_bytes(out, ATTR_NAME, name, name_length);
    append_bytes(out, ATTR_TEXT, text, length);
}

static void append_message(GString *out, const GString *message)
{
    append_varint(out, message->len);
    g_string_append_len(out, message->str, (gssize)message->len);
}

void chakra_append_header(GString *out)
{
    g_autoptr(GString) message = g_string_new(NULL);
    append_bytes(message, META_VERSION, VERSION, strlen(VERSION));
    append_message(out, message);
}

static void append_attributes(GString *message, const ChakraNode *node)
{
    append_attribute(message, "is_cpu_op", ATTR_BOOL, 0);
    if (node->kind == CHAKRA_COMPUTE)
        return;
    append_attribute(message, "comm_size", ATTR_INT64, (uint64_t)node->bytes);
    if (node->kind == CHAKRA_COLLECTIVE) {
        append_attribute(message, "comm_type", ATTR_INT64, (uint64_t)node->collective);
        append_text_attribute(message, "pg_name", node->group);
        return;
    }
    append_attribute(message, "comm_src", ATTR_INT32, (uint64_t)node->from);
    append_attribute(message, "comm_dst", ATTR_INT32, (uint64_t)node->to);
    append_attribute(message, "comm_tag", ATTR_INT32, (uint64_t)node->tag);
}

void chakra_append_node(GString *out, const ChakraNode *node)
{
    g_autoptr(GString) message = g_string_sized_new(256);
    if (node->id > 0) /* proto3 leaves zeros out */
        append_number(message, NODE_ID, node->id);
    append_bytes(message, NODE_NAME, node->name, strlen(node->name));
    append_number(message, NODE_TYPE, node->kind);
    if (node->dep_count > 0) { /* packed, as proto3 has it */
        gsize length = 0;
        for (int i = 0; i < node->dep_count; i++)
            length += varint_length(node->deps[i]);
        append_varint(message, NODE_DATA_DEPS << 3 | LENGTH);
        append_varint(message, length);
        for (int i = 0; i < node->dep_count; i++)
            append_varint(message, node->deps[i]);
    }
    if (node->micros > 0)
        append_number(message, NODE_MICROS, node->micros);
    append_attributes(message, node);
    append_message(out, message);
}
