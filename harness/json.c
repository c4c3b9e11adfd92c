#include "json.h"

#include <inttypes.h>
#include <math.h>

static void put_string(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(stream, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f)
            fprintf(stream, "\\u%04x", *c);
        else
            fputc(*c, stream);
    }
    fputc('"', stream);
}

static void begin_value(struct json *json, const char *key)
{
    if (json->separate)
        fputc(',', json->stream);
    json->separate = true;
    if (key) {
        put_string(json->stream, key);
        fputc(':', json->stream);
    }
}

static void open_group(struct json *json, const char *key, char bracket)
{
    begin_value(json, key);
    fputc(bracket, json->stream);
    json->separate = false;
}

static void close_group(struct json *json, char bracket)
{
    fputc(bracket, json->stream);
    json->separate = true;
}

void json_open_object(struct json *json, const char *key)
{
    open_group(json, key, '{');
}

void json_close_object(struct json *json)
{
    close_group(json, '}');
}

void json_open_array(struct json *json, const char *key)
{
    open_group(json, key, '[');
}

void json_close_array(struct json *json)
{
    close_group(json, ']');
}

void json_null(struct json *json, const char *key)
{
    begin_value(json, key);
    fputs("null", json->stream);
}

void json_string(struct json *json, const char *key, const char *value)
{
    if (!value) {
        json_null(json, key);
        return;
    }
    begin_value(json, key);
    put_string(json->stream, value);
}

void json_number(struct json *json, const char *key, double value)
{
    if (!isfinite(value)) {
        json_null(json, key);
        return;
    }
    begin_value(json, key);
    fprintf(json->stream, "%.15g", value);
}

void json_count(struct json *json, const char *key, uint64_t value)
{
    begin_value(json, key);
    fprintf(json->stream, "%" PRIu64, value);
}

void json_bool(struct json *json, const char *key, bool value)
{
    begin_value(json, key);
    fputs(value ? "true" : "false", json->stream);
}
