"""A decision among fabrics: the user's cluster and workload on each of them, and what follows.

names        the words that users write
request      what is asked, checked as a whole
candidates   the fabrics to choose from, as specs
tuned        the settings of a candidate that is tuned first
growth       the same at larger sizes, in packets or by the flow model
prices       what each costs, from figures of the user's
standing     how fast the candidates are beside each other
choice       the one that the rules recommend
reasons      sentences, each with the figure that it stands on
decide       all of it in order, and its files
"""
