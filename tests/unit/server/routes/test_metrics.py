from __future__ import annotations

from pilothouse.server.routes.metrics import Family, render


def test_metrics_are_written_in_the_text_format() -> None:
    families = [
        Family("a_total", "counter", "What\nis\\counted.", [({}, 3)]),
        Family("b", "gauge", "By label.", [({"x": 'a"b\\c\nd', "y": "é"}, 0.1), ({"x": "", "y": ""}, 12345678901)]),
        Family("c", "gauge", "Nothing yet.", []),
    ]
    assert render(families) == (
        "# HELP a_total What\\nis\\\\counted.\n"
        "# TYPE a_total counter\n"
        "a_total 3\n"
        "# HELP b By label.\n"
        "# TYPE b gauge\n"
        'b{x="a\\"b\\\\c\\nd",y="é"} 0.10000000000000001\n'
        'b{x="",y=""} 12345678901\n'
        "# HELP c Nothing yet.\n"
        "# TYPE c gauge\n"
    )
