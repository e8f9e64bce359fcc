/* A sum of two members in every format: 1 + 1. */
#include "check.h"

static const struct {
  const char *name;
  int size;
  uint32_t one, two;
} formats[] = {
    {"fp32", 4, 0x3f800000, 0x40000000}, {"bf16", 2, 0x3f80, 0x4000}, {"fp16", 2, 0x3c00, 0x4000},
    {"fp8e4m3", 1, 0x38, 0x40},          {"fp8e5m2", 1, 0x3c, 0x40},  {"int32", 4, 1, 2},
};

int main(void) {
  for (int f = 0; f < 6; f++) {
    tributary_card *card;
    tributary_job *job;
    tributary_info info = {0};
    uint32_t one[8] = {0}, two[8] = {0}, half[8] = {0};
    const void *inputs[] = {one, two};
    char name[64];
    snprintf(name, sizeof name, "cpu:format=%s,workers=2", formats[f].name);
    OK(tributary_open(name, NULL, &card));
    OK(tributary_configure(card, NULL, &job));
    info.size = sizeof info;
    OK(tributary_card_info(card, &info));
    CHECK(info.format_size == formats[f].size && info.result_size == formats[f].size);
    for (int i = 0; i < 8; i++) {
      memcpy((char *)one + i * info.format_size, &formats[f].one, (size_t)info.format_size);
      memcpy((char *)two + i * info.format_size, &formats[f].one, (size_t)info.format_size);
    }
    OK(tributary_reduce(job, half, inputs, 2, 8, TRIBUTARY_MEAN));
    CHECK(memcmp(half, one, sizeof one) == 0);
    OK(tributary_reduce(job, two, inputs, 2, 8, TRIBUTARY_SUM));
    for (int i = 0; i < 8; i++)
      CHECK(memcmp((char *)two + i * info.format_size, &formats[f].two, (size_t)info.format_size) == 0);
    OK(tributary_job_close(job));
    OK(tributary_card_close(card));
  }
  puts("done");
  return 0;
}
