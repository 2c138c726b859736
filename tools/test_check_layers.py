#!/usr/bin/env python3
"""Each rule of check_layers.py is broken once, in a small tree of its own, and must be reported at its line."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_layers  # noqa: E402

LAYERS = "base:\ndevice: base\nengine = base device\nops: engine\n"
CLEAN = {
    "tools/layers.txt": LAYERS,
    "ingot/base/error.h": "#pragma once\n",
    "ingot/device/storage.h": '// Memory.\n#pragma once\n\n#include "ingot/base/error.h"\n',
    "ingot/ops/relu.cpp": '#include "ingot/base/error.h"\n#include "ingot/device/storage.h"\n',
}


class CheckLayers(unittest.TestCase):
    def findings(self, **changes):
        """`path:line: rule` of everything found in the clean tree with files added or replaced."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {**CLEAN, **changes.get("files", {})}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return [f"{path}:{line}: {rule}" for path, line, rule, _ in check_layers.Checker(root).run()]

    def expect(self, expected, files):
        self.assertEqual(self.findings(files=files), [expected])

    def test_a_clean_tree_has_no_findings(self):
        self.assertEqual(self.findings(), [])

    def test_an_upward_include(self):
        self.expect("ingot/base/shape.h:2: layer",
                    {"ingot/base/shape.h": '#pragma once\n#include "ingot/device/storage.h"\n'})

    def test_a_folder_that_is_no_layer(self):
        self.expect("ingot/extra/x.cpp:1: layer", {"ingot/extra/x.cpp": '#include "ingot/base/error.h"\n'})

    def test_the_library_including_a_test(self):
        self.expect("ingot/ops/x.cpp:1: layer",
                    {"ingot/ops/x.cpp": '#include "tests/a.h"\n', "tests/a.h": "#pragma once\n"})

    def test_layers_that_name_a_later_layer(self):
        self.expect("tools/layers.txt:1: layer", {"tools/layers.txt": "base: ops\n" + LAYERS.replace("base:\n", "")})

    def test_an_include_that_is_not_from_the_root(self):
        self.expect("ingot/ops/x.cpp:1: include", {"ingot/ops/x.cpp": '#include "relu.h"\n'})

    def test_a_header_that_one_of_ours_stands_for(self):
        self.expect("ingot/ops/softmax.cpp:1: wrapped", {"ingot/ops/softmax.cpp": "#include <nlohmann/json.hpp>\n"})
        ours = {"ingot/base/json_library.h": "#pragma once\n#include <nlohmann/json.hpp>\n"}
        self.assertEqual(self.findings(files=ours), [])

    def test_files_that_include_each_other(self):
        self.expect("ingot/base/b.h:2: cycle",
                    {"ingot/base/a.h": '#pragma once\n#include "ingot/base/b.h"\n',
                     "ingot/base/b.h": '#pragma once\n#include "ingot/base/a.h"\n'})

    def test_names(self):
        self.expect("ingot/base/string_utils.cpp:1: name", {"ingot/base/string_utils.cpp": "\n"})
        self.expect("tests/common/x.cpp:1: name", {"tests/common/x.cpp": "\n"})
        self.assertEqual(self.findings(files={"ingot/base/longest_common_prefix.cpp": "\n"}), [])
        self.expect("ingot/base/CamelCase.cpp:1: name", {"ingot/base/CamelCase.cpp": "\n"})

    def test_length(self):
        self.assertEqual(self.findings(files={"ingot/base/long.cpp": "\n" * 600}), [])
        self.expect("ingot/base/long.cpp:601: length", {"ingot/base/long.cpp": "\n" * 601})
        self.assertEqual(self.findings(files={"tests/oracle/made.py": "\n" * 900}), [])

    def test_pragma_once(self):
        self.expect("ingot/base/x.h:1: pragma_once", {"ingot/base/x.h": "// Text.\nint x();\n#pragma once\n"})

    def test_a_header_compiled_per_target_guards_itself(self):
        guard = "#if defined(X) == defined(HWY_TARGET_TOGGLE)\n#endif\n"
        self.assertEqual(self.findings(files={"ingot/base/x.h": guard}), [])

    def test_open_tasks(self):
        task = "TO" + "DO"
        self.expect("ingot/base/x.cpp:2: todo", {"ingot/base/x.cpp": f"\n// {task}: later\n"})
        self.expect("tools/x.py:1: todo", {"tools/x.py": f"# {task}(me): later\n"})
        self.assertEqual(self.findings(files={"ingot/base/x.cpp": f"// {task}(#12): later\n"}), [])

    def test_dead_code_and_tests(self):
        for line in ("TEST(Relu, DISABLED_Works) {}", "  GTEST_SKIP();", "EXPECT_TRUE(true);", "#if 0"):
            self.expect("tests/ops/x_test.cpp:2: dead", {"tests/ops/x_test.cpp": f"\n{line}\n"})
        self.assertEqual(self.findings(files={"tests/ops/x_test.cpp": '  GTEST_SKIP()\n      << "no data";\n'}), [])

    def test_using_directives_in_headers_only(self):
        self.expect("ingot/base/x.h:2: namespace", {"ingot/base/x.h": "#pragma once\nusing namespace std;\n"})
        self.assertEqual(self.findings(files={"ingot/base/x.cpp": "using namespace std;\n"}), [])

    def test_paths_of_a_machine(self):
        for folder in ("home", "Users", "root", "work"):
            self.expect("docs/x.md:1: machine", {"docs/x.md": f"see /{folder}/me/x\n"})
        self.assertEqual(self.findings(files={"docs/x.md": "see ./root/me and a/home/b\n"}), [])

    def test_the_program_reports_and_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tools").mkdir()
            (root / "tools/layers.txt").write_text(LAYERS)
            (root / "ingot/base").mkdir(parents=True)
            (root / "ingot/base/misc.cpp").write_text("\n")
            done = subprocess.run([sys.executable, check_layers.__file__, "--root", folder], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "ingot/base/misc.cpp:1: name: `misc` says nothing: name what it holds\n")


if __name__ == "__main__":
    unittest.main()
