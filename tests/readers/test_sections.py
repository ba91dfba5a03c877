"""Pieces of a CSV section: clean stretches are columns of pyarrow, the lines between them lists."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eprof.readers import sections

CELLS = st.lists(st.sampled_from(["axpy", "dot", "", "1,024", "größe"]), min_size=1, max_size=4)


@given(st.lists(st.tuples(CELLS, st.booleans()), min_size=1, max_size=4), st.booleans())
def test_pieces_below_each_other_have_the_cells_of_all(pieces, kind):
    types = {False: pa.string(), True: pa.dictionary(pa.int32(), pa.string())}
    columns = [pa.array(cells, types[kind]) if is_clean else cells for cells, is_clean in pieces]
    whole = sections.joined([{3: cells} for cells in columns])
    texts = [cell for cells, _ in pieces for cell in cells]
    assert list(whole) == [3] and sections.texts_of(whole[3]) == texts and sections.size(whole) == len(texts)
    assert sections.are_last(whole[3]).tolist() == [cell == texts[-1] for cell in texts]
    names = sections.names_of(whole[3])
    assert names.texts().tolist() == texts
