"""Bad input to the command line, and what each must be told."""

from dataclasses import dataclass

ROLES = ("--label", "income", "--sensitive", "sex")
NOTIONS = "equalized-odds, demographic-parity, equal-opportunity"
WHOLE = "must be a whole number of at least"
READABLE = "must be a file that can be read"


@dataclass(frozen=True)
class BadCommand:
    """Arguments that must fail, and what the message must contain; see :class:`tests.bad_input.entry.Bad`."""

    name: str
    arguments: tuple[str, ...]
    parts: tuple[str, str, str, str]


def train(name, table, *options, told, roles=ROLES, out="NEW"):
    quick = ("--clean-ratio", "0.9", "--max-iter", "8")
    return BadCommand(f"train: {name}", ("train", table, *roles, "--out", out, *quick, *options), told)


def predict(name, run="RUN", table="people.csv", out="new.csv", *, told):
    return BadCommand(f"predict: {name}", ("predict", run, table, "-o", out), told)


def audit(name, *options, table="people.csv", told):
    return BadCommand(f"audit: {name}", ("audit", table, *ROLES, *options), told)


def other(command, name, *options, told):
    return BadCommand(f"{command}: {name}", (*command.split(), *options), told)


TABLES = [
    train("no such file", "none.csv",
          told=("the table", READABLE, "none.csv: No such file", "a file that can be read")),
    train("a folder for a table", "a-folder",
          told=("the table", "must have files that end in .parquet", "a-folder has none", "name another place")),
    train("an empty file", "empty.csv",
          told=("empty.csv", "is empty", "empty", "the first row must hold the columns' names")),
    train("names and no rows", "only-names.csv",
          told=("only-names.csv", "must have rows below the names", "it has none", "name another file")),
    train("no names", "no-names.csv",
          told=("columns of no-names.csv", "must have different names", "'0' is there 3 times",
                "The first row must hold the columns' names")),
    train("a name twice", "twice.csv",
          told=("columns of twice.csv", "different names", "'age' is there 2 times", "rename one")),
    train("a row that is too long", "ragged.csv",
          told=("ragged.csv", "as many fields in every row as in the first, 2", "row 3 has 3",
                "must stand in quotes")),
    train("a quote that is not closed", "open-quote.csv",
          told=("open-quote.csv", 'must have a second "', "one is not closed", "add it, or take the first out")),
    train("semicolons", "semicolons.csv", "--separator", ",",
          told=("semicolons.csv", "between its columns, not a comma", "a semicolon", "add --separator ';'")),
    train("a binary file", "binary.csv",
          told=("binary.csv", "is neither text nor Parquet", "binary", "save the table as CSV")),
    train("a workbook", "workbook.csv",
          told=("workbook.csv", "looks like a workbook", "workbook", "save the sheet as CSV")),
    train("a damaged Parquet file", "damaged.parquet",
          told=("damaged.parquet", "is not a Parquet file that can be read", "smaller than", "write it again")),
    train("one class", "one-class.csv",
          told=("--label", "two or more values to tell apart", "only the value 'low'", "name another column")),
    train("no labels", "no-labels.csv",
          told=("--label", "two or more values to tell apart", "no value at all", "name another column")),
    train("a rare label", "rare-label.csv",
          told=("label", "must be in at least 10 rows", "'mid' of 'income' is in 3", "merge it with another value")),
    train("a label in two ways", "two-ways.csv",
          told=("must be in at least 10 rows", "'High' of 'income' is in 3", "reads like 'high'", "one way")),
    train("a label in every row", "many-labels.csv",
          told=("--label", "must be a column with at most 20 values", "has 300",
                "add a column that says in which class")),
    train("one group", "one-group.csv",
          told=("--sensitive", "must make two or more groups", "only 'man'", "name another column")),
    train("no groups", "no-groups.csv",
          told=("--sensitive", "must make two or more groups", "no value at all", "name another column")),
    train("a small group", "small-group.csv",
          told=("groups of 'sex'", "must have at least 30 people", "'other' (5 people)", "--small-groups ignore")),
    train("names for groups", "names-for-groups.csv",
          told=("--sensitive", "must make at most 20 groups", "makes 300", "choose a column of groups")),
    train("texts among numbers", "mixed.csv",
          told=("column 'age'", "mixes numbers with 1 text", "('old'; spreadsheet row 2)", "--categories 'age'")),
    train("nothing to learn from", "nothing-to-learn.csv",
          told=("nothing-to-learn.csv", "must have a column to learn from", "the same value in every row",
                "beside the label")),
]  # fmt: skip

OPTIONS = [
    train("a misspelt label", "people.csv", roles=("--label", "incom", "--sensitive", "sex"),
          told=("--label", "must be a column of people.csv", "got 'incom'", "Did you mean 'income'?")),
    train("one column for both", "people.csv", roles=("--label", "sex", "--sensitive", "sex"),
          told=("--label and --sensitive", "must be different columns", "both are 'sex'", "name another")),
    train("the label to drop", "people.csv", "--drop", "income",
          told=("--label and --drop", "must be different columns", "both are 'income'", "name another")),
    train("a sensitive column of numbers", "people.csv", roles=("--label", "income", "--sensitive", "age"),
          told=("--sensitive", "must be a column of groups", "52 different ones", "add --bins age=")),
    train("an unknown positive label", "people.csv", "--positive", "rich",
          told=("--positive", "must be a value of 'income'", "got 'rich'", "Its values are high, low")),
    train("an unknown notion", "people.csv", "--fairness", "fair",
          told=("--fairness", "must be one of", "got 'fair'", NOTIONS)),
    train("a clean ratio in per cent", "people.csv", "--clean-ratio", "90",
          told=("--clean-ratio", "must be a number in (0, 1]", "got 90", "for 90 % pass 0.9")),
    train("a clean ratio of 0", "people.csv", "--clean-ratio", "0",
          told=("--clean-ratio", "must be a number in (0, 1]", "got 0", '"auto" to have it estimated')),
    train("a clean ratio of nan", "people.csv", "--clean-ratio", "nan",
          told=("--clean-ratio", "must be a number in (0, 1]", "got nan", '"auto" to have it estimated')),
    train("a test share in per cent", "people.csv", "--test", "20",
          told=("--test", "must be a share between 0 and 1", "got 20", "for 20 % pass 0.2")),
    train("a share and a file to measure on", "people.csv", "--test", "0.3", "--test-file", "people.csv",
          told=("--test and --test-file", "must not be given together", "given", "a share, or a file")),
    train("nothing left to learn from", "people.csv", "--test", "0.999",
          told=("--test", "at least 30 to learn from", "0.999 of 300 rows", "change it")),
    train("nothing left to measure on", "people.csv", "--test", "0.0001",
          told=("--test", "must leave rows to measure on", "0.0001 of 300 rows leaves 0", "give --test-file")),
    train("bins that are none", "people.csv", "--bins", "age",
          told=("--bins", "must be COLUMN=EDGES or COLUMN=HOW MANY", "got 'age'", "such as age=25,45,65")),
    train("an unknown column to drop", "people.csv", "--drop", "agee",
          told=("--drop", "must be a column of people.csv", "got 'agee'", "Did you mean 'age'?")),
    train("a separator of two letters", "people.csv", "--separator", "::",
          told=("--separator", "must be one character", "got '::'", "or tab")),
    train("too few updates", "people.csv", "--max-iter", "0", told=("--max-iter", f"{WHOLE} 1", "got 0", "at least 1")),
    train("a huge seed", "people.csv", "--seed", str(2**70),
          told=("--seed", "must be a whole number", str(2**70), "below 2**63")),
    train("a test file with other columns", "people.csv", "--test-file", "others.csv",
          told=("what the model learns from", "must be a column of others.csv", "got 'age'",
                "Its columns are sex, income")),
    train("a test file that is not there", "people.csv", "--test-file", "none.csv",
          told=("--test-file", READABLE, "none.csv: No such file", "a file that can be read")),
    train("an output that is a file", "people.csv", out="a-file",
          told=("--out", "must be a folder", "a-file is a file", "name another")),
    train("an output of somebody else", "people.csv", "--force", out="theirs",
          told=("--out", "must be a new folder, or one that fairsieve train made", "theirs", "name another")),
    train("an output that is a run", "people.csv", out="RUN",
          told=("--out", "must be a new folder", "RUN holds a run", "add --force to replace it")),
    train("an output that cannot be made", "people.csv", out="a-file/deeper",
          told=("--out", "must be a folder that can be written", "Not a directory", "a folder that can be written")),
    train("a failure in a new folder", "one-class.csv", out="new/deep/run",
          told=("--label", "two or more values", "only the value 'low'", "name another column")),
]  # fmt: skip

OTHERS = [
    predict("no run", "nowhere",
          told=("RUN", "must be a folder that fairsieve train made", "nowhere has no model.skops",
                                       "was given to train as --out")),
    predict("columns that are missing", table="others.csv",
            told=("what the model learns from", "must be a column of others.csv", "got 'age'",
                "Its columns are")),
    predict("texts among numbers", table="mixed.csv",
            told=("column 'age'", "mixes numbers with 1 text", "('old'; spreadsheet row 2)", "add --missing 'old'")),
    predict("its own table", out="people.csv",
          told=("--out", "must not be a file that is read", "people.csv", "name another")),
    predict("a file that is there", out="a-file",
          told=("--out", "must be a new file", "a-file is there", "add --force")),
    predict("a Parquet file", out="new.parquet",
          told=("--out", "must be a CSV file", "got new.parquet", "name it new.csv")),
    predict("a folder", out="a-folder",
          told=("--out", "must be a file to write", "a-folder is a folder", "name a file in it")),
    predict("a folder that is not there", out="no/such/new.csv",
            told=("the output", "must be a file that can be written", "no/such/new.csv", "in a folder that exists")),
    audit("no such file", table="none.csv", told=("the table", READABLE, "none.csv", "a file that can be read")),
    audit("a file that is there", "-o", "a-file",
          told=("--out", "must be a new file", "a-file is there", "add --force")),
    other("compare", "unknown data", "--data", "titanic",
          told=("data", "must be one of", "got 'titanic'", "synthetic, compas, adult, german")),
    other("compare", "too many flips", "--rate", "0.9",
          told=("--rate", "must be a number in [0, 0.5]", "got 0.9", "0.5")),
    other("compare", "an unknown attack", "--noise", "x",
          told=("--noise", "must be one of", "got 'x'", "none, label")),
    other("compare", "an unknown method", "--methods", "lr,x",
          told=("methods", "or among lr", "got 'x'", "all, paper")),
    other("compare", "no seeds", "--seeds", "0", told=("--seeds", f"{WHOLE} 1", "got 0", "at least 1")),
    other("compare", "no jobs", "--jobs", "0", told=("--jobs", f"{WHOLE} 1", "got 0", "at least 1")),
    other("compare", "an output that is a file", "--methods", "lr", "--out", "a-file",
          told=("--out", "must be a folder that can be written", "a-file: File exists", "a folder")),
    other("reproduce", "an unknown table", "table9",
          told=("what", "must be one of list, all", "got 'table9'", "table1")),
    other("reproduce", "no seeds", "table1", "--seeds", "0",
          told=("--seeds", "must be a number of at least 1", "got '0'", "or METHOD=N")),
    other("reproduce", "arrays that are not there", "table1", "--arrays", "a-folder",
          told=("xz_train.npy", "is not in", "a-folder", "point to the folder of the authors' arrays")),
    other("data fetch", "an unknown data set", "titanic",
          told=("names", "must be one of", "got 'titanic'", "adult, compas, german")),
    other("data describe", "an unknown data set", "titanic",
          told=("name", "must be one of", "got 'titanic'", "synthetic")),
    other("data export", "a data set that is no table", "german", "new.csv",
          told=("name", "must be one of", "got 'german'", "adult")),
    other("data export", "a file that is there", "adult", "a-file",
          told=("OUT", "must be a new file", "a-file is there", "add --force")),
    other("data export", "a share in per cent", "adult", "new.csv", "--wrong", "10",
          told=("wrong", "must be a number in [0, 1]", "got 10.0", "for 10 % pass 0.1")),
    other("demo", "an unknown notion", "--data", "synthetic", "--fairness", "x", "--out", "new",
          told=("--fairness", "must be one of", "got 'x'", NOTIONS)),
    other("demo", "a rate of nan", "--data", "synthetic", "--rate", "nan", "--out", "new",
          told=("--rate", "must be a number in [0, 0.5]", "got nan", "[0, 0.5]")),
    other("demo", "labels made wrong where they are", "--rate", "0.2", "--out", "new",
          told=("--rate", "must be left out with the labels of NHANES", "not made wrong", "--data synthetic")),
    other("demo", "an output that is a file", "--out", "a-file",
          told=("--out", "must be a folder that can be written", "a-file: File exists", "a folder")),
]  # fmt: skip

ENTRIES = [*TABLES, *OPTIONS, *OTHERS]
