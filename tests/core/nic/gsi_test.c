/* The queue pair of General Services. */
#include "nic/qp_table.h"
#include "programs.h"

TEST(gsi_has_number_1_and_its_q_key)
{
    struct bench bench;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    struct nic *nic = &bench.nic[0];
    EXPECT(!qp_numbered(nic, GSI_QPN));
    struct qp *gsi = nic_add_gsi(nic, &bench_qp_config);
    EXPECT(gsi);
    EXPECT_EQUAL(GSI_QPN, qp_number(gsi));
    EXPECT(qp_numbered(nic, GSI_QPN) == gsi);
    EXPECT_EQUAL(TRANSPORT_UD, gsi->config.transport);
    EXPECT_EQUAL(GSI_QKEY, gsi->config.qkey);
    bench_free(&bench);
}

TEST(nic_has_one_gsi)
{
    struct bench bench;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    EXPECT(nic_add_gsi(&bench.nic[0], &bench_qp_config));
    EXPECT(!nic_add_gsi(&bench.nic[0], &bench_qp_config));
    bench_free(&bench);
}

TEST(gsi_of_an_invalid_config_is_refused)
{
    struct bench bench;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    struct qp_config config = bench_qp_config;
    config.mtu = 1000;
    EXPECT(!nic_add_gsi(&bench.nic[0], &config));
    EXPECT(nic_add_gsi(&bench.nic[0], &bench_qp_config));
    bench_free(&bench);
}

TEST(other_numbers_stay_as_they_are)
{
    struct bench bench;
    bench_init(&bench, FRAMING_ETHERNET, &bench_qp_config);
    struct nic *nic = &bench.nic[0];
    EXPECT(nic_add_gsi(nic, &bench_qp_config));
    struct qp *qp = nic_add_qp(nic, &bench_qp_config);
    EXPECT_EQUAL(FIRST_QPN + 1, qp_number(qp)); /* after the bench's own */
    EXPECT(!qp_numbered(nic, 0));
    EXPECT(!qp_numbered(nic, 2));
    nic_remove_qp(nic, qp, bench.clock.now);
    bench_free(&bench);
}

MAIN(RUN(gsi_has_number_1_and_its_q_key), RUN(nic_has_one_gsi),
     RUN(gsi_of_an_invalid_config_is_refused), RUN(other_numbers_stay_as_they_are))
