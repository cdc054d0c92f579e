/* base/units.c - text to quantities and back, independent of the locale. */
#include "base/units.h"

#include <math.h>
#include <string.h>

typedef struct UnitWord {
    const char *word;
    double factor;
} UnitWord;

#define KIBI 1024.0

static const UnitWord words_none[] = {{"", 1}, {NULL, 0}};
static const UnitWord words_tokens[] = {
    {"", 1},           {"K", 1e3},        {"k", 1e3},        {"M", 1e6},         {"B", 1e9},
    {"G", 1e9},        {"T", 1e12},       {"tokens", 1},     {"K tokens", 1e3},  {"k tokens", 1e3},
    {"M tokens", 1e6}, {"B tokens", 1e9}, {"G tokens", 1e9}, {"T tokens", 1e12}, {NULL, 0}};
static const UnitWord words_bytes[] = {{"", 1},
                                       {"B", 1},
                                       {"byte", 1},
                                       {"bytes", 1},
                                       {"kB", 1e3},
                                       {"KB", 1e3},
                                       {"MB", 1e6},
                                       {"GB", 1e9},
                                       {"TB", 1e12},
                                       {"PB", 1e15},
                                       {"KiB", KIBI},
                                       {"MiB", KIBI *KIBI},
                                       {"GiB", KIBI *KIBI *KIBI},
                                       {"TiB", KIBI *KIBI *KIBI *KIBI},
                                       {"PiB", KIBI *KIBI *KIBI *KIBI *KIBI},
                                       {"bit", 0.125},
                                       {"kbit", 125},
                                       {"Kbit", 125},
                                       {"Mbit", 125e3},
                                       {"Gbit", 125e6},
                                       {"Tbit", 125e9},
                                       {NULL, 0}};
static const UnitWord words_bytes_per_s[] = {{"", 1},
                                             {"B/s", 1},
                                             {"bytes/s", 1},
                                             {"kB/s", 1e3},
                                             {"KB/s", 1e3},
                                             {"MB/s", 1e6},
                                             {"GB/s", 1e9},
                                             {"TB/s", 1e12},
                                             {"PB/s", 1e15},
                                             {"KiB/s", KIBI},
                                             {"MiB/s", KIBI *KIBI},
                                             {"GiB/s", KIBI *KIBI *KIBI},
                                             {"TiB/s", KIBI *KIBI *KIBI *KIBI},
                                             {"bit/s", 0.125},
                                             {"kbit/s", 125},
                                             {"Kbit/s", 125},
                                             {"Mbit/s", 125e3},
                                             {"Gbit/s", 125e6},
                                             {"Tbit/s", 125e9},
                                             {"bps", 0.125},
                                             {"kbps", 125},
                                             {"Mbps", 125e3},
                                             {"Gbps", 125e6},
                                             {"Tbps", 125e9},
                                             {"b/s", 0.125},
                                             {"kb/s", 125},
                                             {"Kb/s", 125},
                                             {"Mb/s", 125e3},
                                             {"Gb/s", 125e6},
                                             {"Tb/s", 125e9},
                                             {"kBps", 1e3},
                                             {"MBps", 1e6},
                                             {"GBps", 1e9},
                                             {"TBps", 1e12},
                                             {NULL, 0}};
static const UnitWord words_seconds[] = {{"", 1},
                                         {"s", 1},
                                         {"sec", 1},
                                         {"second", 1},
                                         {"seconds", 1},
                                         {"ms", 1e-3},
                                         {"us", 1e-6},
                                         {"\xc2\xb5s", 1e-6},
                                         {"\xce\xbcs", 1e-6},
                                         {"ns", 1e-9},
                                         {"ps", 1e-12},
                                         {"min", 60},
                                         {"minute", 60},
                                         {"minutes", 60},
                                         {"h", 3600},
                                         {"hour", 3600},
                                         {"hours", 3600},
                                         {"d", 86400},
                                         {"day", 86400},
                                         {"days", 86400},
                                         {"week", 604800},
                                         {"weeks", 604800},
                                         {NULL, 0}};
static const UnitWord words_flops[] = {
    {"", 1},           {"FLOP/s", 1},     {"kFLOP/s", 1e3},  {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9},
    {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}, {"EFLOP/s", 1e18}, {"FLOPS", 1},     {"MFLOPS", 1e6},
    {"GFLOPS", 1e9},   {"TFLOPS", 1e12},  {"PFLOPS", 1e15},  {"EFLOPS", 1e18}, {NULL, 0}};
static const UnitWord words_watts[] = {{"", 1}, {"W", 1}, {"mW", 1e-3}, {"kW", 1e3}, {"MW", 1e6}, {NULL, 0}};
static const UnitWord words_frac[] = {{"", 1}, {"%", 0.01}, {"percent", 0.01}, {NULL, 0}};
static const UnitWord words_usd[] = {{"", 1},    {"$", 1},       {"USD", 1},     {"K", 1e3},
                                     {"M", 1e6}, {"K USD", 1e3}, {"M USD", 1e6}, {NULL, 0}};

typedef struct UnitInfo {
    const char *symbol, *examples;
    const UnitWord *words;
} UnitInfo;

static const UnitInfo units[] = {
    [ORR_UNIT_NONE] = {"", "8, 1e3", words_none},
    [ORR_UNIT_TOKENS] = {"tokens", "300e9, 300B, 15.6T", words_tokens},
    [ORR_UNIT_BYTES] = {"bytes", "80 GB, 80 GiB, 512 MiB", words_bytes},
    [ORR_UNIT_BYTES_PER_S] = {"bytes/s", "25 GB/s, 3.35 TB/s, 400 Gbit/s", words_bytes_per_s},
    [ORR_UNIT_SECONDS] = {"s", "2.5 us, 3 ms, 12 h, 30 days", words_seconds},
    [ORR_UNIT_FLOPS_PER_S] = {"FLOP/s", "312 TFLOP/s, 2.25 PFLOP/s", words_flops},
    [ORR_UNIT_WATTS] = {"W", "400 W, 1.2 kW", words_watts},
    [ORR_UNIT_FRAC] = {"", "0.05, 5 %", words_frac},
    [ORR_UNIT_USD] = {"USD", "2.5, 2.5 USD", words_usd},
};

const char *orr_unit_symbol(OrrUnit unit)
{
    g_assert((int)unit >= 0 && (int)unit < (int)G_N_ELEMENTS(units));
    return units[unit].symbol;
}

/* End of the decimal number that `text` begins with; `text` itself when there is none. */
static const char *number_end(const char *text)
{
    const char *at = text;
    if (*at == '+' || *at == '-')
        at++;
    int digits = 0;
    for (; g_ascii_isdigit(*at); at++)
        digits++;
    if (*at == '.')
        for (at++; g_ascii_isdigit(*at); at++)
            digits++;
    if (digits == 0)
        return text;
    if (*at == 'e' || *at == 'E') {
        const char *exponent = at + 1;
        if (*exponent == '+' || *exponent == '-')
            exponent++;
        if (g_ascii_isdigit(*exponent)) {
            while (g_ascii_isdigit(*exponent))
                exponent++;
            at = exponent;
        }
    }
    return at;
}

bool orr_parse_quantity(const char *text, OrrUnit unit, double *ret_value, GError **error)
{
    g_assert((int)unit >= 0 && (int)unit < (int)G_N_ELEMENTS(units));
    g_autofree char *trimmed = g_strstrip(g_strdup(text));
    const char *end = number_end(trimmed);
    if (end == trimmed || strlen(trimmed) > 100) {
        orr_fail(error, ORR_ERROR_INPUT, "\"%.60s\" is not a quantity; write a number such as %s", text,
                 units[unit].examples);
        return false;
    }
    const char *word = end;
    while (g_ascii_isspace(*word))
        word++;
    for (const UnitWord *known = units[unit].words; known->word != NULL; known++) {
        if (strcmp(known->word, word) != 0)
            continue;
        const double number = g_ascii_strtod(trimmed, NULL);
        /* Small factors divide by their whole inverse: 2.5 us is the double 2.5e-6. */
        const double value = known->factor < 1 ? number / round(1 / known->factor) : number * known->factor;
        if (!isfinite(value)) {
            orr_fail(error, ORR_ERROR_INPUT, "\"%.60s\" is too large a number; write one such as %s", text,
                     units[unit].examples);
            return false;
        }
        *ret_value = value;
        return true;
    }
    orr_fail(error, ORR_ERROR_INPUT, "\"%.60s\" has no unit that fits (\"%.30s\"); write it like %s", text,
             word, units[unit].examples);
    return false;
}

/* `value` with `digits` significant digits and its unit. */
static const char *print_value(char *text, double value, int digits, const char *unit)
{
    char format[8], number[32];
    g_snprintf(format, sizeof format, "%%.%dg", digits);
    g_ascii_formatd(number, sizeof number, format, value);
    g_snprintf(text, ORR_TEXT_SIZE, "%s%s%s", number, unit[0] != '\0' ? " " : "", unit);
    return text;
}

/* `value` rounded to `digits` significant digits, so that 999.96 takes the next prefix, not "1000". */
static double round_digits(double value, int digits)
{
    if (value == 0.0 || !isfinite(value))
        return value;
    char format[8], number[32];
    g_snprintf(format, sizeof format, "%%.%de", digits - 1);
    return g_ascii_strtod(g_ascii_formatd(number, sizeof number, format, value), NULL);
}

const char *orr_text_bytes(char *text, double bytes)
{
    static const char *const prefixes[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int step = 0;
    double value = bytes;
    while (isfinite(value) && step + 1 < (int)G_N_ELEMENTS(prefixes) && fabs(value) >= 1023.995) {
        value /= KIBI;
        step++;
    }
    char number[32];
    const bool whole = step == 0 && value == floor(value);
    g_ascii_formatd(number, sizeof number, whole ? "%.0f" : "%.2f", value);
    g_snprintf(text, ORR_TEXT_SIZE, "%s %s", number, prefixes[step]);
    return text;
}

const char *orr_text_seconds(char *text, double seconds)
{
    static const UnitWord steps[] = {{"ps", 1e-12}, {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
    const double size = fabs(round_digits(seconds, 4));
    if (size == 0.0 || !isfinite(size))
        return print_value(text, seconds, 4, "s");
    if (size >= 2 * 86400.0)
        return print_value(text, seconds / 86400.0, size >= 86400e3 ? 6 : 3, "days");
    if (size >= 2 * 3600.0)
        return print_value(text, seconds / 3600.0, 3, "h");
    if (size >= 1000.0)
        return print_value(text, seconds / 60.0, 3, "min");
    int step = (int)G_N_ELEMENTS(steps) - 1;
    while (step > 0 && size < steps[step].factor)
        step--;
    return print_value(text, seconds / steps[step].factor, 4, steps[step].word);
}

static const char *print_prefixed(char *text, double value, int digits, const char *const *prefixes,
                                  int count, const char *unit)
{
    int step = 0;
    while (isfinite(value) && step + 1 < count && fabs(round_digits(value, digits)) >= 1000.0) {
        value /= 1000.0;
        step++;
    }
    char name[24];
    g_snprintf(name, sizeof name, "%s%s", prefixes[step], unit);
    if (fabs(value) >= 1000.0)
        digits = 6;
    return print_value(text, value, digits, name);
}

const char *orr_text_si(char *text, double value, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E", "Z", "Y"};
    return print_prefixed(text, value, 3, prefixes, (int)G_N_ELEMENTS(prefixes), unit);
}

const char *orr_text_count(char *text, double value)
{
    static const char *const prefixes[] = {"", "K", "M", "B", "T"};
    return print_prefixed(text, value, 4, prefixes, (int)G_N_ELEMENTS(prefixes), "");
}
