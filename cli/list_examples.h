/* cli/list_examples.h - the scenarios that come along, as `orrery list examples` tells them. */
#ifndef ORR_CLI_LIST_EXAMPLES_H
#define ORR_CLI_LIST_EXAMPLES_H

#include "cli/listing.h"

enum { CLI_EXAMPLE_COLUMNS = 2 };
extern const CliColumn cli_example_columns[CLI_EXAMPLE_COLUMNS];

/* A row for each file of scenarios/`folder`: the name that commands take, and what it is. */
bool cli_list_examples(const char *folder, CliListing *listing, GError **error);

#endif
