/* Parameters by name: each value goes into the bytes of its own member, and what does not fit a
 * struct is refused. */
#include "sim/parameter_field.h"

#include <string.h>

#include "testbench.h"

enum { UNSET = 0xA5 }; /* every byte of a member that was not set */

struct settings {
    uint8_t before, octet, after_octet;
    bool flag;
    uint16_t half, after_half;
    uint32_t word, after_word;
    uint64_t whole, after_whole;
    double share, after_share;
    uint16_t list[3], after_list;
    struct {
        uint8_t low, level, high;
    } each[3];
};

static const struct parameter_field fields[] = {PARAMETER_FIELD(settings, octet),
                                                PARAMETER_FIELD(settings, flag),
                                                PARAMETER_FIELD(settings, half),
                                                PARAMETER_FIELD(settings, word),
                                                PARAMETER_FIELD(settings, whole),
                                                PARAMETER_ARRAY(settings, list),
                                                PARAMETER_OF_EACH(settings, each, level),
                                                PARAMETER_FIELD(settings, share),
                                                {0}};

static const uint64_t values[] = {1, 2, 3, 4};

static struct settings unset(void)
{
    struct settings settings;
    memset(&settings, UNSET, sizeof settings);
    return settings;
}

static bool set(struct settings *settings, const char *name, const uint64_t *list, uint32_t count)
{
    const struct parameter parameter = {name, list, count, NULL};
    return parameters_set(settings, fields, &parameter, 1);
}

TEST(value_fills_its_member_and_no_other)
{
    static const uint64_t octet = UINT8_MAX, half = UINT16_MAX - 1, word = UINT32_MAX - 2,
                          whole = UINT64_MAX - 3, yes = 1;
    static const struct parameter all[] = {{"whole", &whole, 1, NULL},
                                           {"word", &word, 1, NULL},
                                           {"half", &half, 1, NULL},
                                           {"octet", &octet, 1, NULL},
                                           {"flag", &yes, 1, NULL}};
    struct settings settings = unset(), expected = settings;
    expected.octet = UINT8_MAX;
    expected.flag = true;
    expected.half = UINT16_MAX - 1;
    expected.word = UINT32_MAX - 2;
    expected.whole = UINT64_MAX - 3;
    EXPECT(parameters_set(&settings, fields, all, sizeof all / sizeof *all));
    EXPECT_EQUAL(0, memcmp(&expected, &settings, sizeof settings));
}

TEST(list_fills_an_array_from_its_start)
{
    struct settings settings = unset(), expected = settings;
    EXPECT(set(&settings, "list", values, 2));
    expected.list[0] = 1;
    expected.list[1] = 2;
    EXPECT_EQUAL(0, memcmp(&expected, &settings, sizeof settings));
    EXPECT(set(&settings, "list", values, 3));
    expected.list[2] = 3;
    EXPECT_EQUAL(0, memcmp(&expected, &settings, sizeof settings));
}

TEST(list_sets_the_same_member_of_each_struct)
{
    struct settings settings = unset(), expected = settings;
    EXPECT(set(&settings, "level", values, 3));
    for (int i = 0; i < 3; i++)
        expected.each[i].level = (uint8_t)(i + 1);
    EXPECT_EQUAL(0, memcmp(&expected, &settings, sizeof settings));
}

TEST(one_value_too_many_is_refused)
{
    struct settings settings = unset();
    const struct settings before = settings;
    EXPECT(!set(&settings, "list", values, 4));
    EXPECT(!set(&settings, "level", values, 4));
    EXPECT(!set(&settings, "octet", values, 2));
    EXPECT_EQUAL(0, memcmp(&before, &settings, sizeof settings));
}

TEST(value_that_does_not_fit_is_refused)
{
    struct settings settings = unset();
    const uint64_t octet = UINT8_MAX + 1ul, half = UINT16_MAX + 1ul, word = UINT32_MAX + 1ul;
    EXPECT(!set(&settings, "octet", &octet, 1));
    EXPECT(!set(&settings, "half", &half, 1));
    EXPECT(!set(&settings, "word", &word, 1));
}

TEST(real_number_fills_a_double)
{
    struct settings settings = unset(), expected = settings;
    const double share = 0.25;
    const struct parameter real = {.name = "share", .count = 1, .reals = &share};
    expected.share = 0.25;
    EXPECT(parameters_set(&settings, fields, &real, 1));
    EXPECT_EQUAL(0, memcmp(&expected, &settings, sizeof settings));
}

TEST(real_number_and_integer_do_not_fit_each_other)
{
    struct settings settings = unset();
    const struct settings before = settings;
    const double share = 2;
    const struct parameter real = {.name = "whole", .count = 1, .reals = &share};
    EXPECT(!parameters_set(&settings, fields, &real, 1));
    EXPECT(!set(&settings, "share", values, 1));
    EXPECT_EQUAL(0, memcmp(&before, &settings, sizeof settings));
}

TEST(only_a_whole_name_is_known)
{
    struct settings settings = unset();
    EXPECT(!set(&settings, "lis", values, 1));
    EXPECT(!set(&settings, "list0", values, 1));
    EXPECT(!set(&settings, "each", values, 1));
    EXPECT(!set(&settings, "", values, 1));
}

TEST(one_unknown_name_refuses_all)
{
    const struct parameter some[] = {
        {"word", values, 1, NULL}, {"no_such", values, 1, NULL}, {"half", values, 1, NULL}};
    struct settings settings = unset();
    EXPECT(!parameters_set(&settings, fields, some, 3));
}

TEST(without_fields_only_an_empty_list_is_accepted)
{
    const struct parameter some = {"word", values, 1, NULL};
    EXPECT(parameters_set(NULL, NULL, NULL, 0));
    EXPECT(!parameters_set(NULL, NULL, &some, 1));
}

TEST(names_are_listed_in_order_up_to_the_last)
{
    EXPECT_EQUAL(0, strcmp("octet", parameter_name(fields, 0)));
    EXPECT_EQUAL(0, strcmp("level", parameter_name(fields, 6)));
    EXPECT(!parameter_name(fields, 8));
    EXPECT(!parameter_name(fields, 9)); /* nothing is read beyond the end */
    EXPECT(!parameter_name(NULL, 0));
}

MAIN(RUN(value_fills_its_member_and_no_other), RUN(list_fills_an_array_from_its_start),
     RUN(list_sets_the_same_member_of_each_struct), RUN(one_value_too_many_is_refused),
     RUN(value_that_does_not_fit_is_refused), RUN(real_number_fills_a_double),
     RUN(real_number_and_integer_do_not_fit_each_other), RUN(only_a_whole_name_is_known),
     RUN(one_unknown_name_refuses_all), RUN(without_fields_only_an_empty_list_is_accepted),
     RUN(names_are_listed_in_order_up_to_the_last))
