"""What people get with segtail besides its commands: runbooks, alerts, rules, dashboards and examples, with addresses filled in."""
