"""Prints the outcome of each test of a regrtest's --junit-xml file, sorted."""

import sys
import xml.etree.ElementTree

for case in sorted(
    (case.get("name", ""), [child.tag for child in case if child.tag not in ("system-out", "system-err")], case.get("result", ""))
    for case in xml.etree.ElementTree.parse(sys.argv[1]).iter("testcase")
):
    name, children, result = case
    print("+".join(children) or result or "passed", name)
