#include "text/unicode.h"

#include "base/checked.h"
#include "base/utf8.h"

typedef struct case_range {
    uint32_t first, last, stride;
    int32_t delta;
} case_range;

typedef struct case_special {
    uint32_t from, to[3]; /* unused places are 0 */
} case_special;

typedef struct cp_range {
    uint32_t first, last;
} cp_range;

#include "text/unicode_tables.h"

#define BIG_SIGMA   0x3a3
#define FINAL_SIGMA 0x3c2

bool ct_cp_is_space(uint32_t cp)
{
    if (cp < 0x80)
        return (cp >= 9 && cp <= 13) || (cp >= 0x1c && cp <= 0x20);
    return cp == 0x85 || cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) ||
           cp == 0x2028 || cp == 0x2029 || cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

static bool in_ranges(const cp_range *r, size_t n, uint32_t cp)
{
    size_t low = 0;

    while (low < n) {
        size_t mid = low + (n - low) / 2;

        if (cp > r[mid].last)
            low = mid + 1;
        else if (cp < r[mid].first)
            n = mid;
        else
            return true;
    }
    return false;
}

bool ct_cp_is_printable(uint32_t cp)
{
    if (cp < 0x80)
        return cp >= 0x20 && cp < 0x7f;
    return !in_ranges(not_printable, CT_LEN(not_printable), cp);
}

ct_str ct_str_lstrip(ct_str s)
{
    while (s.n) {
        unsigned len;

        if (!ct_cp_is_space(ct_utf8_next(s, 0, &len)))
            break;
        s = (ct_str){s.p + len, s.n - len};
    }
    return s;
}

/* Offset of the character that ends at `end`. */
static size_t before(ct_str s, size_t end)
{
    size_t at = end - 1;

    while (at && end - at < 4 && ((unsigned char)s.p[at] & 0xc0) == 0x80)
        at--;
    return at;
}

ct_str ct_str_rstrip(ct_str s)
{
    while (s.n) {
        size_t at = before(s, s.n);
        unsigned len;

        if (!ct_cp_is_space(ct_utf8_next(s, at, &len)))
            break;
        s.n = at;
    }
    return s;
}

ct_str ct_str_strip(ct_str s)
{
    return ct_str_lstrip(ct_str_rstrip(s));
}

size_t ct_utf8_count(ct_str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return n;
}

size_t ct_utf8_offset(ct_str s, size_t from, size_t i)
{
    while (i && from < s.n) {
        from++;
        while (from < s.n && ((unsigned char)s.p[from] & 0xc0) == 0x80)
            from++;
        i--;
    }
    return from;
}

static uint32_t map_simple(const case_range *r, size_t n, uint32_t cp)
{
    size_t low = 0;

    /* Ranges with a stride of 2 may interleave, so the neighbours are looked at too. */
    while (low < n) {
        size_t mid = low + (n - low) / 2;

        if (r[mid].first <= cp)
            low = mid + 1;
        else
            n = mid;
    }
    for (size_t back = 1; back <= 3 && back <= low; back++) {
        const case_range *c = &r[low - back];

        if (cp <= c->last && (cp - c->first) % c->stride == 0)
            return (uint32_t)((int32_t)cp + c->delta);
    }
    return cp;
}

static void put(ct_buf *out, uint32_t cp)
{
    char bytes[4];

    ct_buf_add(out, bytes, ct_utf8_put(bytes, cp));
}

static bool put_special(ct_buf *out, const case_special *s, size_t n, uint32_t cp)
{
    for (size_t i = 0; i < n; i++)
        if (s[i].from == cp) {
            for (size_t k = 0; k < CT_LEN(s[i].to) && s[i].to[k]; k++)
                put(out, s[i].to[k]);
            return true;
        }
    return false;
}

void ct_str_upper(ct_buf *out, ct_str s)
{
    unsigned len;

    for (size_t at = 0; at < s.n; at += len) {
        uint32_t cp = ct_utf8_next(s, at, &len);

        if (cp < 0x80)
            ct_buf_addc(out, (char)(cp >= 'a' && cp <= 'z' ? cp - 32 : cp));
        else if (!put_special(out, to_upper_special, CT_LEN(to_upper_special), cp))
            put(out, map_simple(to_upper, CT_LEN(to_upper), cp));
    }
}

static bool is_cased(uint32_t cp)
{
    if (cp < 0x80)
        return (cp >= 'a' && cp <= 'z') || (cp >= 'A' && cp <= 'Z');
    return in_ranges(cased, CT_LEN(cased), cp);
}

static bool is_case_ignorable(uint32_t cp)
{
    if (cp < 0x80)
        return cp == '\'' || cp == '.' || cp == ':' || cp == '^' || cp == '`';
    return in_ranges(case_ignorable, CT_LEN(case_ignorable), cp);
}

/* Unicode's Final_Sigma: a cased letter before and none after, case-ignorable characters
 * passed over.  The look-ahead ends at the next sigma, so a text of them stays linear. */
static bool cased_after(ct_str s, size_t at)
{
    unsigned len;

    for (; at < s.n; at += len) {
        uint32_t cp = ct_utf8_next(s, at, &len);

        if (!is_case_ignorable(cp))
            return is_cased(cp);
    }
    return false;
}

void ct_str_lower(ct_buf *out, ct_str s)
{
    bool cased_before = false;
    unsigned len;

    for (size_t at = 0; at < s.n; at += len) {
        uint32_t cp = ct_utf8_next(s, at, &len);

        if (cp < 0x80)
            ct_buf_addc(out, (char)(cp >= 'A' && cp <= 'Z' ? cp + 32 : cp));
        else if (cp == BIG_SIGMA && cased_before && !cased_after(s, at + len))
            put(out, FINAL_SIGMA);
        else if (!put_special(out, to_lower_special, CT_LEN(to_lower_special), cp))
            put(out, map_simple(to_lower, CT_LEN(to_lower), cp));
        if (!is_case_ignorable(cp))
            cased_before = is_cased(cp);
    }
}
