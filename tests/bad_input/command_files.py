"""The files that bad commands are given."""

from tests.support.people import people, write_csv

ROWS = 300


def make_files(folder):
    """Tables that are wrong in one way each, folders and files that are in the way."""
    right = people(ROWS)
    changes = {
        "people": {},
        "one-class": {"income": ["low"] * ROWS},
        "one-group": {"sex": ["man"] * ROWS},
        "no-groups": {"sex": ["?"] * ROWS},
        "no-labels": {"income": [""] * ROWS},
        "rare-label": {"income": ["mid"] * 3 + right["income"][3:]},
        "two-ways": {"income": ["High"] * 3 + right["income"][3:]},
        "many-labels": {"income": [f"about {i}" for i in range(ROWS)]},
        "small-group": {"sex": ["other"] * 5 + right["sex"][5:]},
        "names-for-groups": {"sex": [f"person {i}" for i in range(ROWS)]},
        "mixed": {"age": ["old", *right["age"][1:]]},
        "nothing-to-learn": dict.fromkeys(("age", "hours", "job"), ["the same"] * ROWS),
    }
    for name, change in changes.items():
        write_csv(folder / f"{name}.csv", right | change)
    contents = {
        "empty.csv": b"",
        "only-names.csv": b"age,sex,income\n",
        "no-names.csv": "\n".join(f"{i},{i % 2},{i % 3}" for i in range(50)).encode(),
        "twice.csv": b"age,age,income\n1,2,low\n",
        "ragged.csv": b"sex,income\nman,low\nman,low,3\n",
        "open-quote.csv": b'sex,income\nman,"low\nman,low\n',
        "semicolons.csv": b"sex;income\nman;low\n",
        "binary.csv": bytes(range(256)),
        "workbook.csv": b"PK\x03\x04rest",
        "damaged.parquet": b"PAR1 nothing PAR1",
        "others.csv": b"sex,income\nman,low\n",
        "a-file": b"somebody's",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    (folder / "a-folder").mkdir()
    (folder / "theirs").mkdir()
    (folder / "theirs" / "notes.txt").write_text("somebody's")
