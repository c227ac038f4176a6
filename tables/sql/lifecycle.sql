-- The lifecycle's formulas (DESIGN section 7), as in streams/rules/lifecycle.py; a test holds the two together.
-- Times are epoch milliseconds; importance and score are 0-100.
CREATE OR REPLACE TEMP MACRO score_of(importance, pinned, last_accessed, now, fresh_days, half_life_days) AS
    CASE
        WHEN pinned THEN importance
        ELSE importance * pow(2, -greatest(0, (now - last_accessed) / 86400000.0 - fresh_days) / half_life_days)
    END;

CREATE OR REPLACE TEMP MACRO state_of(score, active, cold) AS
    CASE WHEN score >= active THEN 'active' WHEN score >= cold THEN 'cold' ELSE 'deprecated' END;
