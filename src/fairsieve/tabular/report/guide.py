"""How to read each part of a run's page."""

from __future__ import annotations

__all__ = [
    "CALIBRATION",
    "COLUMNS",
    "DROPPED",
    "EPOCHS",
    "GAPS",
    "GROUPS",
    "MIXED",
    "QUALITY",
    "ROUNDS",
    "SUSPECTS",
    "TRADE_OFF",
]

GROUPS = (
    "How to read it: each rate is a share of the people named, so groups are treated alike where their rates are "
    "equal. An interval says where the rate may lie if it were measured on many more such people; a small group "
    "has a wide one. Compare the two models within a group, and the groups under the fair model."
)
GAPS = (
    "A difference of .050 is five points. Where its interval spans 0, the groups may be alike and the difference "
    "chance; where it does not, the model treats them differently, or its labels do."
)
TRADE_OFF = (
    "How to read it: a fairer model pays some accuracy for a smaller disparity, or should. All points are measured on "
    "the test part; where one was to be chosen (--tolerance), it was chosen without looking at that."
)
MIXED = "The points between the plain and the fair model are models whose weights are mixed from both, by quarters."
ROUNDS = "The other points are rounds of training, each under other weights of the rows; later ones need not be fairer."
QUALITY = (
    "How to read it: where a label is rare, accuracy says little, for to predict it for nobody is right almost always. "
    "AUC is .5 for guesses and 1 for a perfect order; average precision is the share of the rare label for guesses; "
    "balanced accuracy counts each label the same. Precision, recall and balanced accuracy depend on the threshold "
    "(--threshold), AUC and average precision do not."
)
CALIBRATION = (
    "How to read it: of people with a probability of .7, seven of ten should have the label; then points lie on the "
    "dashed line. Points below it are probabilities that are too high. If groups lie apart, the same probability "
    "means different things for them. Each point has at least ten people."
)
DROPPED = (
    "How to read it: every epoch, rows whose labels look wrong are left out, and more where the groups' ratios "
    "demand it. Dropping is even-handed if, among people of one label, no group loses a larger share, "
    "or no larger one than its wrong labels explain, where those were estimated. An estimate can be wrong too: "
    "look at the rows below before you believe that a group's labels are worse."
)
EPOCHS = (
    "How to read it: in every epoch the ratios "
    "move: the share that a group has of its label rises while the model serves it worse. Losses say how badly "
    "the model fits the people of a cell; lines that draw together are groups served alike. A line that still "
    "moves at the end may gain from more --epochs."
)
SUSPECTS = (
    "How to read it: for these rows the model is surer of another label than of the one given. It can be wrong, "
    "and is more likely so for people unlike the rest: look, and change a label only for a reason of your own. "
    "Rows of a file are numbered as in a spreadsheet, with the names in row 1, those of a data frame from 0. Loss says "
    "how surprising the label is, probability how sure the model is of the suggested one, and epochs kept in how many "
    "epochs the row was trained on after all. Click a head to sort, or filter by words. Rows of the test part are not "
    "looked at. fairsieve audit may list others: it looks at all rows, and at the estimate alone."
)
COLUMNS = (
    "How to read it: numbers are standardised by the training part. A value that the model has not seen in "
    "training says nothing to it. These values count as missing: {missing}."
)
