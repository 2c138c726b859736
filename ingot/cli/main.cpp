#include "ingot/cli/program.h"

int main(int argc, char** argv) { return ingot::run_program(argc, argv); }
