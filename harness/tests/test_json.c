#include "json.h"

#include "check.h"

#include <math.h>

int main(void)
{
    char *text;
    size_t length;
    struct json json = {.stream = open_memstream(&text, &length)};
    json_open_object(&json, NULL);
    json_string(&json, "a\"b", "line\nbreak\\ \x01 é");
    json_number(&json, "nan", NAN);
    json_number(&json, "infinity", -INFINITY);
    json_number(&json, "tenth", 0.1);
    json_count(&json, "count", UINT64_MAX);
    json_string(&json, "none", NULL);
    json_open_array(&json, "list");
    json_bool(&json, NULL, true);
    json_number(&json, NULL, 2);
    json_close_array(&json);
    json_open_object(&json, "empty");
    json_close_object(&json);
    json_close_object(&json);
    fclose(json.stream);
    CHECK(!strcmp(text, "{\"a\\\"b\":\"line\\u000abreak\\\\ \\u0001 é\",\"nan\":null,"
                        "\"infinity\":null,\"tenth\":0.1,\"count\":18446744073709551615,"
                        "\"none\":null,\"list\":[true,2],\"empty\":{}}"));
    free(text);
    return 0;
}
