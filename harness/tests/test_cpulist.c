#include "cpulist.h"

#include "check.h"

static void accepts(const char *text, const char *formatted)
{
    struct cpulist list;
    char written[256];
    CHECK(cpulist_parse(text, &list));
    cpulist_format(&list, written, sizeof written);
    CHECK(!strcmp(written, formatted));
    cpulist_free(&list);
}

static void refuses(const char *text)
{
    struct cpulist list;
    CHECK(!cpulist_parse(text, &list));
}

int main(void)
{
    accepts("0", "0");
    accepts("0-3", "0-3");
    accepts("8,10-11,9", "8,10-11,9"); /* the order given is the order of the threads */
    accepts("4-5,6,7", "4-7");
    refuses("");
    refuses("a");
    refuses("1,");
    refuses(",1");
    refuses("1-");
    refuses("3-1");
    refuses("-1");
    refuses("1 2");
    refuses("0x1");
    refuses("1,1");
    refuses("0-2,1");
    refuses("8192");
    refuses("99999999999999999999");

    char cut[8];
    struct cpulist list;
    CHECK(cpulist_parse("0,2,4,6,8", &list));
    cpulist_format(&list, cut, sizeof cut);
    CHECK(strstr(cut, "..."));
    cpulist_free(&list);
    return 0;
}
