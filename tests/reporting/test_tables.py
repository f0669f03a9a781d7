"""Tables as they are declared: a line of a header, and a function that gives rows."""

from mapgap.reporting.tables import Column, header, tabulated


def test_a_line_declares_keys_titles_and_forms():
    assert header("network | gap: gap [%]; .2f | printed; g | fits: fits: gain") == [
        Column("network", "network"),
        Column("gap", "gap [%]", ".2f"),
        Column("printed", "printed", "g"),
        Column("fits", "fits: gain"),
    ]


def test_rows_become_a_table_with_the_declared_header():
    @tabulated("squares", "Squares", "number: n | square; .1f", "Of the first numbers.")
    def squares(count):
        """Numbers and squares."""
        for number in range(count):
            yield {"number": number, "square": number**2, "shown": False}

    table = squares(3)
    assert (squares.__doc__, table.name, table.note) == ("Numbers and squares.", "squares", "Of the first numbers.")
    assert table.csv() == "number,square\n0,0\n1,1\n2,4\n"
    assert squares(0).csv() == "number,square\n"
