-- The lifecycle's formulas, as in schemas/lifecycle.py; a test compares the two.
-- Times are epoch milliseconds; importance and score are 0-100.

-- The days in which a memory of this importance loses half of its score.
CREATE OR REPLACE TEMP MACRO half_life_of(importance, half_life_days) AS
    half_life_days * pow(2, (importance - 70) / 10);

CREATE OR REPLACE TEMP MACRO score_of(importance, pinned, last_accessed, now, fresh_days, half_life_days) AS
    CASE
        WHEN pinned THEN importance
        ELSE importance * pow(
            2,
            -greatest(0, (now - last_accessed) / 86400000.0 - fresh_days) / half_life_of(importance, half_life_days)
        )
    END;

CREATE OR REPLACE TEMP MACRO state_of(score, active, cold) AS
    CASE WHEN score >= active THEN 'active' WHEN score >= cold THEN 'cold' ELSE 'deprecated' END;

-- As in schemas/memories.py: to two decimals, never rounded up, so it stays on the same side of a state's border.
CREATE OR REPLACE TEMP MACRO shown_score(score) AS
    CASE WHEN round(score, 2) <= score THEN round(score, 2) ELSE round(round(score, 2) - 0.01, 2) END;

-- As epoch_ms() in a quarter of the time; equal to the bit if the moment has whole milliseconds.
CREATE OR REPLACE TEMP MACRO ms_of(moment) AS epoch_us(moment) / 1000.0;

-- When a memory leaves this state without an access: not before this moment, and at most milliseconds after it.
CREATE OR REPLACE TEMP MACRO leaves_at(
    state, importance, pinned, last_accessed, active, cold, fresh_days, half_life_days
) AS
    CASE
        WHEN pinned OR state = 'deprecated' THEN 'infinity'::DOUBLE
        ELSE last_accessed - 1 + 86400000.0 * (
            fresh_days
            + half_life_of(importance, half_life_days)
                * (log2(importance / CASE state WHEN 'active' THEN active ELSE cold END) - 1e-12)
        )
    END;
