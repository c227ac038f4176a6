"""Pure decisions: functions of values and a clock."""
