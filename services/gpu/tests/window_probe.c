/* Makes windows of the pieces of work that stdin names, a line each: lane, work, seconds. The first
 * line is the number of lanes. Prints the figures. */
#include "window_record.h"

#include <inttypes.h>
#include <stdio.h>

int main(void)
{
    struct window_record record;
    unsigned lanes, lane;
    double work, seconds;
    if (window_record_open(&record) || scanf("%u", &lanes) != 1)
        return 1;
    window_record_begin(&record, lanes);
    while (scanf("%u %lf %lf", &lane, &work, &seconds) == 3)
        window_record_add(&record, lane, work, seconds);
    struct windows_figures figures = window_record_figures(&record);
    printf("%" PRIu64 " %.17g %.17g %.17g %.17g %.17g %.17g\n", figures.count, figures.rate_median,
           figures.rate_best, figures.rate_cv, figures.rate_whole, figures.work, figures.device_s);
    window_record_close(&record);
    return 0;
}
