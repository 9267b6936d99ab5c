"""From files to a first model: ``anabranch data`` describes columns, ``anabranch train`` trains on them."""
