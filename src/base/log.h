/* Log lines: level, then text, to one sink set before threads start.  Without a
 * sink nothing is written: the library never prints by itself. */
#ifndef CT_BASE_LOG_H
#define CT_BASE_LOG_H

typedef enum ct_log_level { CT_LOG_DEBUG, CT_LOG_INFO, CT_LOG_WARN } ct_log_level;
/* line has no newline at its end. */
typedef void ct_log_sink(void *ctx, ct_log_level level, const char *line);

void ct_log_set_sink(ct_log_sink *sink, void *ctx, ct_log_level least);
void ct_log(ct_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
