"""Every metric of segtail, one literal each: names, labels and meanings that alert rules, dashboards and the documentation rely on."""
