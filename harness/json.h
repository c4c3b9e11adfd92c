/* Writes one JSON value per line, nothing more: keys in the order given, no NaN, no Infinity. */
#ifndef HOSTBENCH_JSON_H
#define HOSTBENCH_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *stream;
    bool separate; /* the next value needs a comma before it */
};

/* `key` is NULL inside an array and for the outermost value. */
void json_open_object(struct json *json, const char *key);
void json_close_object(struct json *json);
void json_open_array(struct json *json, const char *key);
void json_close_array(struct json *json);
void json_string(struct json *json, const char *key, const char *value); /* NULL: null */
void json_number(struct json *json, const char *key, double value);      /* not finite: null */
void json_count(struct json *json, const char *key, uint64_t value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

#endif
